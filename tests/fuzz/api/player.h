// Plays a sequence of calls of the whole interface and knows what each must answer: a shadow of the heap, of which
// every block is written with a pattern of its own and looked at before each change.
//
// Not called: malloc_stats and numalloc_statistics_write("exit"), which print; fork, exec and dlopen.
#pragma once

#include <memory>
#include <vector>

#include "api/held.h"
#include "api/places.h"

namespace fuzz {

class Player {
public:
    // `mostly_blocks`: what is slow, and what is no business of blocks, in one step of some thousand only.
    Player(Input& in, Table& table, std::size_t slots, std::size_t budget, bool mostly_blocks = false)
        : in_(in), table_(table), slots_(slots), budget_(budget), mostly_blocks_(mostly_blocks) {}

    void step() {
        Held& b = slots_[in_.below(slots_.size())];
        const std::size_t what = in_.below(64);
        if (b.p == nullptr && what < 58) {
            if (live_ < budget_) take(b);
        } else if (what < 28 || live_ > 2 * budget_) {
            if (b.p != nullptr) drop(b);
        } else if (what < 42) {
            resize(b);
        } else if (what < 50) {
            exchange(b);
        } else if (what < 58) {
            look_at(b);
        } else if (!mostly_blocks_ || in_.below(512) == 0) {
            rare(what);
        }
    }

    void release_blocks() {
        for (Held& b : slots_)
            if (b.p != nullptr) drop(b);
    }
    // Once nobody has a block of them.
    void destroy_heaps() {
        for (Heap& h : heaps_) {
            if (h.heap == nullptr) continue;
            must(h.objects.load() == 0 && numalloc_heap_used(h.heap) == 0, "an empty heap uses nothing");
            numalloc_heap_destroy(h.heap);
            h.heap = nullptr;
        }
    }
    // Whether a block of this player's lies on `b`.
    bool has_on(const Held& b) const {
        for (const Held& other : slots_)
            if (&other != &b && other.p != nullptr && other.p < b.p + b.size && b.p < other.p + other.size) return true;
        return false;
    }
    void set_others(const std::vector<std::unique_ptr<Player>>* all) { all_ = all; }
    static void release(Input& in, Held& b) {
        if (b.heap == nullptr && b.origin == model::Origin::malloc && in.below(8) == 0) {
            model::verify(b);
            psm_free(b.p);
        } else {
            model::release(in, b);
        }
        if (b.heap != nullptr) b.heap->objects.fetch_sub(1, std::memory_order_release);
    }

private:
    static constexpr std::size_t heap_count = 3;

    // The seldom and slow ones.
    void rare(std::size_t what) {
        switch (what) {
            case 58:
            case 59: use_heap(heaps_[in_.below(heap_count)]); break;
            case 60: batch(); break;
            case 61: place_thread(in_, table_.exact); break;
            case 62: ask_too_much(in_); break;
            default: ask(); break;
        }
    }
    void ask() {
        switch (in_.below(6)) {
            case 0: ask_machine(in_); break;
            case 1: ask_sets(in_); break;
            case 2: ask_options(in_); break;
            case 3:
            case 4: ask_statistics(in_); break;
            default: malloc_trim(in_.below(4096)); break;
        }
    }

    std::uint64_t number() { return table_.next_number.fetch_add(1, std::memory_order_relaxed); }

    // A new block, without a pattern so far.
    void taken(Held& b, std::size_t promised) {
        model::check_new(b, promised);
        must(malloc_usable_size(b.p) >= b.size, "usable size");
        if (table_.exact && all_ != nullptr)
            for (const auto& player : *all_)
                if (player->has_on(b)) model::report(b, "lies on another block", 0);
    }

    void take(Held& b) {
        b = Held{};
        if (in_.below(3) != 0) {
            static_cast<model::Block&>(b) = model::allocate(in_, number());
            taken(b, 8);
        } else {
            take_elsewhere(b);
        }
        if (b.p != nullptr) live_ += b.size;
    }

    // Of a node, of all nodes, of a set, of an owner, of a heap.
    void take_elsewhere(Held& b) {
        b.number = number();
        b.size = model::draw_size(in_);
        b.size_known = false;
        if (in_.below(4) == 0) return take_of_heap(b, heaps_[in_.below(heap_count)]);
        const Placed placed = allocate_elsewhere(in_, b.size);
        b.p = static_cast<unsigned char*>(placed.p);
        if (b.p == nullptr) return;
        b.alignment = placed.alignment;
        taken(b, b.alignment);
        if (placed.zero) model::check_zero(b);
        // Of large ones, of those aligned as such, and of what is recorded or guarded, the kernel is asked, which knows
        // one node.
        const bool small = !is_profiled && !is_guarded && b.alignment <= 4096 && malloc_usable_size(b.p) <= 32 * 1024;
        if (is_node(placed.node) && small && numalloc_node_of(b.p) != placed.node)
            model::report(b, "of another node", placed.node);
        model::write(b);
    }

    void take_of_heap(Held& b, Heap& h) {
        if (h.heap == nullptr) {
            create(h);
            if (h.heap == nullptr) return;
        }
        void* p;
        std::size_t promised = 16;
        bool zero = false;
        switch (in_.below(4)) {
            case 0:
                p = numalloc_heap_calloc(h.heap, 1, b.size);
                zero = true;
                break;
            case 1: p = numalloc_heap_aligned_alloc(h.heap, promised = model::draw_alignment(in_), b.size); break;
            case 2: p = numalloc_heap_realloc(h.heap, nullptr, b.size); break;
            default: p = numalloc_heap_malloc(h.heap, b.size); break;
        }
        if (p == nullptr) {
            must(h.limited && errno == ENOMEM, "only a limit is in the way of a heap's memory");
            return;
        }
        b.p = static_cast<unsigned char*>(p);
        b.heap = &h;
        h.objects.fetch_add(1, std::memory_order_relaxed);
        taken(b, promised);
        must(numalloc_heap_contains(h.heap, p) == 1, "a heap contains its object");
        if (zero) model::check_zero(b);
        model::write(b);
    }

    void create(Heap& h) {
        if (in_.below(2) == 0) {
            const int node = draw_node(in_);
            h.heap = numalloc_heap_create(node);
            must((h.heap != nullptr) == is_node(node), "a heap on a node");
            if (h.heap != nullptr) must(numalloc_heap_node(h.heap) == node, "a heap's node");
        } else {
            const numalloc_node_set set = draw_set(in_);
            const auto policy = static_cast<numalloc_policy>(in_.below(4));
            h.heap = numalloc_heap_create_on_set(policy, &set);
            must((h.heap != nullptr) == (is_usable(set) && policy != NUMALLOC_LOCAL), "a heap on a set");
        }
        h.limited = false;
    }

    // What realloc did, or could not: `q` of `size` bytes.
    void resized(Held& b, void* q, std::size_t size, Heap* into) {
        if (size == 0) {
            must(q == nullptr, "realloc to nothing frees");
            if (b.heap != nullptr) b.heap->objects.fetch_sub(1, std::memory_order_release);
            live_ -= b.size;
            b = Held{};
            return;
        }
        if (q == nullptr) {
            must(into != nullptr && into->limited, "realloc has memory");
            model::verify(b);
            return;
        }
        Held old = b;
        old.p = static_cast<unsigned char*>(q);
        if (const long where = model::first_difference(old, b.size < size ? b.size : size); where >= 0)
            model::report(b, "realloc lost contents", where);
        if (b.heap != into) {
            if (b.heap != nullptr) b.heap->objects.fetch_sub(1, std::memory_order_release);
            if (into != nullptr) into->objects.fetch_add(1, std::memory_order_relaxed);
        }
        live_ = live_ - b.size + size;
        b.heap = into;
        b.p = old.p;
        b.size = size;
        b.number = number();
        b.origin = model::Origin::malloc;
        b.alignment = 0;
        b.size_known = false;
        taken(b, 16);
        model::write(b);
    }

    void resize(Held& b) {
        const bool of_malloc = b.origin == model::Origin::malloc || b.origin == model::Origin::aligned;
        const std::size_t way = in_.below(8);
        if (!of_malloc) return drop(b);
        const std::size_t size = in_.below(4) == 0 ? model::draw_size(in_) : b.size / 2 + 1 + in_.below(b.size + 16);
        if (size > most_bytes) return;
        model::verify(b);
        if (way < 3 && (b.heap == nullptr || !b.heap->limited)) {
            live_ -= b.size;
            model::resize(in_, b, number());
            live_ += b.size;
            taken(b, 16);
        } else if (way == 3) {
            const int node = draw_node(in_);
            void* const q = numalloc_realloc_on_node(b.p, size, node);
            if (!is_node(node)) must(q == nullptr, "realloc on no node");
            else
                resized(
                    b, q, size,
                    b.heap != nullptr && (q == nullptr || numalloc_heap_contains(b.heap->heap, q)) ? b.heap : nullptr);
        } else if (way == 4 && (b.heap == nullptr || !b.heap->limited)) {
            resized(b, psm_realloc(b.p, size), size, b.heap);
        } else if (way == 5) {
            Heap& h = heaps_[in_.below(heap_count)];
            if (h.heap == nullptr) create(h);
            if (h.heap != nullptr) resized(b, numalloc_heap_realloc(h.heap, b.p, size), size, &h);
        } else {
            const std::size_t usable = numalloc_resize_in_place(b.p, size);
            must(usable == malloc_usable_size(b.p), "resize in place says what is usable");
            const std::size_t now = usable < size ? usable : size;  // of 0 it makes 1
            Held old = b;
            if (const long where = model::first_difference(old, b.size < now ? b.size : now); where >= 0)
                model::report(b, "resize in place lost contents", where);
            live_ = live_ - b.size + now;
            b.size = now;
            b.size_known = false;
            taken(b, 8);
            model::write(b);
        }
    }

    void drop(Held& b) {
        live_ -= b.size;
        release(in_, b);
        b = Held{};
    }

    void exchange(Held& b) {
        Table::Mailbox& box = table_.mailboxes[in_.below(Table::mailbox_count)];
        live_ -= b.size;
        {
            const std::lock_guard guard(box.lock);
            std::swap(b, box.block);
        }
        if (b.p == nullptr) return;
        live_ += b.size;
        table_.crossed.fetch_add(1, std::memory_order_relaxed);
        model::verify(b);
    }

    void look_at(const Held& b) {
        model::verify(b);
        if (b.size == 0) return;
        std::size_t on_node[nodes] = {};
        switch (in_.below(mostly_blocks_ ? 1024 : 8)) {
            case 0: {
                // Of what malloc gives where nothing is known of it.
                const std::size_t size = b.size, good = numalloc_good_size(size);
                void* const p = malloc(size);
                const std::size_t usable = malloc_usable_size(p);
                must(good >= size &&
                         (is_guarded || (good < 32 * 1024 && !is_profiled ? usable == good : usable >= good)),
                     "good size is what malloc gives");
                free(p);
                break;
            }
            case 1: must(numalloc_pages_of_block(b.p, on_node, nodes) >= -1, "pages of a block"); break;
            case 2: must(numalloc_pages_of_range(b.p, b.size, on_node, nodes) >= -1, "pages of a range"); break;
            case 3: {
                const int node = draw_node(in_);
                (void)numalloc_move(b.p, node);
                break;
            }
            case 4: (void)numalloc_node_of(b.p + in_.below(b.size)); break;
            case 5:
                for (const Heap& h : heaps_)
                    if (h.heap != nullptr)
                        must(numalloc_heap_contains(h.heap, b.p + in_.below(b.size)) == (b.heap == &h ? 1 : 0),
                             "whether a heap contains it");
                break;
            default: break;
        }
        model::verify(b);
    }

    // How many of the heap's objects this player has.
    int own_blocks(const Heap& h) const {
        int count = 0;
        for (const Held& b : slots_) count += b.heap == &h ? 1 : 0;
        return count;
    }

    void use_heap(Heap& h) {
        if (h.heap == nullptr) return create(h);
        const int own = own_blocks(h);
        const bool mine = h.objects.load(std::memory_order_acquire) == own;
        switch (in_.below(6)) {
            case 0:
                must(numalloc_heap_used(h.heap) <= numalloc_heap_held(h.heap) || !mine, "a heap holds what it uses");
                break;
            case 1:
                h.limited = in_.below(2) == 0;
                numalloc_heap_set_limit(h.heap, h.limited ? in_.below(1 << 22) : SIZE_MAX);
                break;
            case 2: {
                if (!mine) break;
                int seen = 0;
                numalloc_heap_visit(
                    h.heap, [](void*, std::size_t bytes, void* count) { *static_cast<int*>(count) += bytes != 0; },
                    &seen);
                must(seen == own, "a heap is visited object by object");
                break;
            }
            case 3:
                if (mine) (void)numalloc_pages_of_heap(h.heap, nullptr, 0);
                break;
            default:
                if (!mine) break;
                for (Held& b : slots_) {
                    if (b.heap != &h) continue;
                    model::verify(b);
                    live_ -= b.size;
                    b = Held{};
                }
                h.objects.store(0, std::memory_order_relaxed);
                if (in_.below(2) == 0) {
                    numalloc_heap_reset(h.heap);
                    must(numalloc_heap_used(h.heap) == 0, "a reset heap uses nothing");
                } else {
                    numalloc_heap_destroy(h.heap);
                    h.heap = nullptr;
                }
                break;
        }
    }

    void batch() {
        void* blocks[256];
        const std::size_t count = in_.below(sizeof blocks / sizeof blocks[0] + 1);
        const std::size_t size = in_.below(16) == 0 ? model::draw_size(in_) : 1 + in_.below(2000);
        if (size * count > most_bytes) return;
        must(numalloc_malloc_batch(size, blocks, count) == count, "a batch has memory");
        model::Block b;
        b.size = size;
        const std::uint64_t first = table_.next_number.fetch_add(count, std::memory_order_relaxed);
        for (std::size_t i = 0; i < count; ++i) {
            b.p = static_cast<unsigned char*>(blocks[i]);
            b.number = first + i;
            model::check_new(b, 16);
            model::write(b);
        }
        for (std::size_t i = 0; i < count; ++i) {
            b.p = static_cast<unsigned char*>(blocks[i]);
            b.number = first + i;
            model::verify(b);
        }
        if (count > 2 && in_.below(2) == 0) std::swap(blocks[0], blocks[count / 2]);
        const std::size_t some = in_.below(count + 1);
        numalloc_free_batch(blocks, some);
        numalloc_free_batch(blocks + some, count - some);
    }

    // The largest that draw_size gives.
    static constexpr std::size_t most_bytes = std::size_t{16} << 20;

    Input& in_;
    Table& table_;
    std::vector<Held> slots_;
    std::size_t live_ = 0;
    std::size_t budget_;
    bool mostly_blocks_;
    Heap heaps_[heap_count];
    const std::vector<std::unique_ptr<Player>>* all_ = nullptr;
};

}  // namespace fuzz
