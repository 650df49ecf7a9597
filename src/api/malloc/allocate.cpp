#include "api/malloc/allocate.h"

#include <cstdlib>
#include <cstring>

#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "heap/process/bound_heap.h"
#include "heap/thread/waiting.h"

namespace numalloc::api {

namespace {

// Above this the kernel moves page tables faster than memcpy moves bytes.
constexpr Bytes move_pages_from = 4 * MiB;

NodeId node_of(const ThreadHeap* h) { return h == &no_heap ? node_without_heap() : h->home->node; }

void* take_big(const ThreadHeap* h, Bytes n, Bytes alignment) { return process_heap.take_big(node_of(h), n, alignment); }

// A growing big object takes its pages along, where the new place is in the same heap, `there`;
// otherwise it is copied. `take(bytes)` finds a place then.
template <class Take>
void* move_big(void* p, Bytes old_bytes, Bytes n, NodeId there, Take take) {
    NodeHeap* const from = process_heap.owner(p);
    PageHeap& pages = from->pages;
    const BagIndex run = pages.region().bag_of(p);
    if (old_bytes >= move_pages_from && n >= old_bytes && there == from->node && pages.moved_to(run) == no_node) {
        // At a huge page's start: then the kernel moves whole page tables, and huge pages unbroken.
        const auto old_bags = static_cast<std::uint32_t>(old_bytes >> bag_shift);
        const BagIndex to = pages.take_to_move(bags_for(n), static_cast<std::uint32_t>(os::huge_page >> bag_shift), old_bags);
        if (to != PageHeap::none && pages.move(run, to, old_bags)) return pages.region().address(to);
    }
    void* const q = take(n);
    if (q == nullptr) return nullptr;
    memcpy(q, p, min_of(old_bytes, n));
    process_heap.give_big(from, run);
    return q;
}

}  // namespace

void* allocate_slow(Bytes n, bool* zeroed) {
    if (zeroed != nullptr) *zeroed = false;
    if (n > largest_request) return nullptr;
    ThreadHeap* const h = thread_heap_slow();
    if (h == nullptr) return nullptr;
    if (n > small_limit) return take_big(h, n, 1);
    const ClassId c = class_of(max_of<Bytes>(n, 1));
    if (h == &no_heap) return allocate_without_heap(node_of(h), c, zeroed);
    // A thread's first call, and sizes above the fast path's, may find an object in the list.
    if (void* p = pop(h, c.value)) return p;
    return refill(h, c, zeroed);
}

void clear(void* p, Bytes n, bool zeroed) {
    if (n > small_limit) {
        PageHeap& pages = process_heap.owner(p)->pages;
        pages.clear(pages.region().bag_of(p), n);
    } else if (zeroed && n > sizeof(Object)) {
        static_cast<Object*>(p)->next = nullptr;
    } else {
        memset(p, 0, max_of<Bytes>(n, sizeof(Object)));
    }
}

void* allocate_aligned(Bytes n, Bytes alignment) {
    if (n > largest_request || alignment > largest_request) return nullptr;
    n = max_of<Bytes>(n, 1);
    // See size_class.h: such a class is aligned by itself.
    if (alignment <= bag_bytes && align_up(n, alignment) <= small_limit) {
        const Bytes rounded = align_up(n, alignment);
        void* p = allocate_fast(rounded);
        return p != nullptr ? p : allocate_slow(rounded, nullptr);
    }
    ThreadHeap* const h = thread_heap_slow();
    return h == nullptr ? nullptr : take_big(h, n, alignment);
}

void* reallocate_in(BoundHeap* into, void* p, Bytes n, const char* call) {
    const Bytes old_bytes = usable_size(p, call);
    const BoundObject o = BoundHeap::find(process_heap.owner(p), p);
    if (o.heap == into) {
        if (old_bytes <= small_limit && n <= old_bytes && n >= old_bytes / 2) return p;
        if (old_bytes > small_limit && n > small_limit && BoundHeap::resize_big(o, n)) return p;
    }
    bool zeroed;
    void* q = n > largest_request ? nullptr : into->allocate(n, 1, &zeroed);
    if (q == nullptr) return o.heap == into && n <= old_bytes ? p : nullptr;
    memcpy(q, p, min_of(old_bytes, n));
    free_slow_path(p, Freed::elsewhere, call);
    return q;
}

void* allocate_on_node(Bytes n, Bytes alignment, NodeId node, bool* zeroed) {
    if (zeroed != nullptr) *zeroed = false;
    if (n > largest_request || alignment > largest_request) return nullptr;
    // A thread's first call makes its heap; a thread that has one is not asked where it runs.
    ThreadHeap* const h = attached_heap != &no_heap ? own_heap() : thread_heap_slow();
    if (h == nullptr) return nullptr;
    // See size_class.h: the class of the rounded size is aligned by itself.
    n = max_of<Bytes>(n, 1);
    const Bytes rounded = alignment <= bag_bytes ? align_up(n, alignment) : ~Bytes{0};
    if (rounded <= small_limit) return allocate_on(h, node, class_of(rounded), zeroed);
    return process_heap.take_big(node, n, alignment);
}

namespace {

// `take(bytes)` finds the new place, in the heap `there`, where there must be one.
template <class Take>
void* reallocate_with(void* p, Bytes old_bytes, Bytes n, const char* call, bool may_stay, NodeId there, Take take) {
    // A small object stays where it is while at least half of it is used.
    if (may_stay && old_bytes <= small_limit && n <= old_bytes && n >= old_bytes / 2) return p;
    if (n > largest_request) return nullptr;
    NodeHeap* const owner = process_heap.owner(p);
    const BagIndex b = owner->pages.region().bag_of(p);
    const bool is_big = owner->pages.region().class_at(b) == no_class;
    const BoundObject bound = is_big ? BoundHeap::find(owner, p) : BoundObject{};
    if (bound.heap != nullptr && may_stay) return reallocate_in(bound.heap, p, n, call);
    if (is_big && bound.heap == nullptr && n > small_limit) {
        const std::uint32_t bags = bags_for(n);
        if (bags == 0) return nullptr;
        if (may_stay && process_heap.resize_big(owner, b, bags)) return p;
        return move_big(p, old_bytes, n, there, take);
    }
    void* const q = take(n);
    if (q == nullptr) return may_stay && n <= old_bytes ? p : nullptr;  // shrinking never fails
    memcpy(q, p, min_of(old_bytes, n));
    const Freed freed = push(this_thread_heap, p);
    if (freed != Freed::done) free_slow_path(p, freed, call);
    return q;
}

}  // namespace

void* reallocate(void* p, Bytes n, const char* call) {
    if (const auto next = NUMALLOC_ASIDE(realloc)) return next(p, n);
    return reallocate_with(p, usable_size(p, call), n, call, true, node_of(attached_heap), [](Bytes bytes) {
        void* q = allocate_fast(bytes);
        return q != nullptr ? q : allocate_slow(bytes, nullptr);
    });
}

void* reallocate_on_node(void* p, Bytes n, NodeId node, const char* call) {
    if (const auto next = NUMALLOC_ASIDE(realloc)) return next(p, n);
    const Bytes old_bytes = usable_size(p, call);
    return reallocate_with(p, old_bytes, n, call, process_heap.node_of_block(p) == node, node,
                           [=](Bytes bytes) { return allocate_on_node(bytes, 1, node, nullptr); });
}

void free_slow_path(void* p, Freed why, const char* call) {
    if (p == nullptr) return;
    ThreadHeap* h = this_thread_heap;
    if (h == &no_heap) {
        // A thread that only frees needs a heap too: for its remote cache.
        h = thread_heap_slow();
        if (h == nullptr) {
            if (const auto next = NUMALLOC_ASIDE(free)) return next(p);
            h = &no_heap;
        }
    }
    free_slow(h, p, why, call);
}

}  // namespace numalloc::api
