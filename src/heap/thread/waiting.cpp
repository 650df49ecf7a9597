#include "heap/thread/waiting.h"

#include <optional>

#include "heap/thread/lists.h"
#include "os/affinity.h"
#include "os/clock.h"

namespace numalloc {

namespace {

std::atomic<std::uint32_t> next_node{0};
std::atomic<std::uint32_t> next_slot{0};

// Since when nobody can be judged, and whether that is so.
std::atomic<std::uint32_t> blind_since{0};
std::atomic<bool> blind{false};

// Not further ahead than `most`. Right after any time without a look: the clock wraps.
bool is_ahead(std::uint32_t at, std::uint32_t now, std::uint32_t most) { return at - now - 1 < most; }

bool is_blind(std::uint32_t now) {
    return blind.load(std::memory_order_relaxed) && now - blind_since.load(std::memory_order_relaxed) < policy::longest_pause;
}

// Neither the caller's own, nor of a thread that this process does not have.
bool may_be_visited(const ThreadHeap* h) {
    return h->in_use.load(std::memory_order_acquire) && h != attached_heap &&
           h->generation.load(std::memory_order_relaxed) == os::fork_gate.generation();
}

bool has_waited(const ThreadHeap* h, std::uint32_t now) {
    return h->has_worked.load(std::memory_order_relaxed) &&
           !is_ahead(h->last_slow_path.load(std::memory_order_relaxed) + policy::long_wait, now, 2 * policy::long_wait) &&
           !is_ahead(h->next_visit.load(std::memory_order_relaxed), now, policy::longest_pause);
}

bool point(ThreadHeap** pointer, ThreadHeap* from, ThreadHeap* to) {
    return compare_exchange_in_order(*pointer, from, to);
}

enum class Visit { in_vain, unfinished, done };

// As many objects as that, which become fewer.
Visit give_what_it_holds(ThreadHeap* h, std::uint32_t& objects) NUMALLOC_REQUIRES(h->visit) {
    for (unsigned c = 1; c < class_count; ++c) {
        auto& lists = h->lists[c];
        const std::uint32_t held = length(h, c) + (lists.sealed != nullptr ? lists.sealed_count : 0U);
        if (held > objects) return Visit::unfinished;
        objects -= held;
        give_list(h, c, To::bags);
        lists.capacity = 0;
    }
    h->remote_cache.flush();
    return Visit::done;
}

Visit give_if_waiting(ThreadHeap* h, const os::WaitSight& sight, std::uint32_t& objects) NUMALLOC_REQUIRES(h->visit) {
    if (!os::has_thread_local(h->thread, h->pointers[0], &this_thread_heap)) return Visit::in_vain;
    // Asked before as well: a thread at work need not be sent the slow way.
    if (!sight.is_in_a_wait(h->thread)) return Visit::in_vain;
    if (!point(h->pointers[0], h, &no_heap)) return Visit::in_vain;
    const bool has_operators = point(h->pointers[1], h, &no_heap);
    const Visit visit = sight.waits(h->thread) ? give_what_it_holds(h, objects) : Visit::in_vain;
    if (has_operators) point(h->pointers[1], &no_heap, h);
    point(h->pointers[0], &no_heap, h);
    return visit;
}

Visit visit(ThreadHeap* h, const os::WaitSight& sight, std::uint32_t now, std::uint32_t& objects) NUMALLOC_EXCLUDES(h->visit) {
    if (!h->visit.try_lock()) return Visit::in_vain;
    Visit result = Visit::in_vain;
    // While they are set the thread cannot let go of its heap.
    if (h->pointers[0] != nullptr && h->pointers[1] != nullptr && may_be_visited(h)) {
        result = give_if_waiting(h, sight, objects);
        if (result == Visit::in_vain) {
            h->visit_pause = min_of(max_of(2 * h->visit_pause, policy::shortest_pause), policy::longest_pause);
            h->next_visit.store(now + h->visit_pause, std::memory_order_relaxed);
        } else {
            h->visit_pause = 0;
            if (result == Visit::done) h->has_worked.store(false, std::memory_order_relaxed);
        }
    }
    h->visit.unlock();
    return result;
}

}  // namespace

void allow_visits() {
    ThreadHeap* const h = attached_heap;
    if (h == &no_heap) return;
    os::Guard guard(h->visit);
    h->pointers[0] = &this_thread_heap;
    h->pointers[1] = &this_thread_operators;
    h->last_slow_path.store(os::milliseconds(), std::memory_order_relaxed);
}

void end_visits(ThreadHeap* h) {
    os::Guard guard(h->visit);
    h->pointers[0] = h->pointers[1] = nullptr;
}

ThreadHeap* own_heap() {
    // What the visitor did to the lists comes before the pointer.
    if (load_acquire(this_thread_heap) == &no_heap && attached_heap != &no_heap) {
        attached_heap->visit.lock();
        attached_heap->visit.unlock();
    }
    return attached_heap;
}

bool visit_some(std::uint32_t now) {
    if (is_blind(now)) return false;
    const unsigned nodes = process_heap.heaps();
    std::uint32_t node = next_node.load(std::memory_order_relaxed) % nodes;
    std::uint32_t slot = next_slot.load(std::memory_order_relaxed);
    std::optional<os::WaitSight> sight;
    std::uint32_t objects = policy::objects_at_a_time;
    bool more = false;
    unsigned visits = 0;
    for (unsigned looked = 0, nodes_passed = 0; looked < policy::heaps_at_a_time && nodes_passed <= nodes;) {
        NodeHeap* const heap = process_heap.opened(NodeId{node});
        if (heap == nullptr || slot >= heap->slots.made()) {
            node = (node + 1) % nodes;
            slot = 0;
            ++nodes_passed;
            continue;
        }
        auto* const h = static_cast<ThreadHeap*>(heap->slots.at(heap->pages.region(), slot));
        if (may_be_visited(h) && has_waited(h, now)) {
            more = visits++ == policy::visits_at_a_time;
            if (more) break;
            if (!sight) sight.emplace();
            if (!sight->sees()) {
                blind_since.store(now, std::memory_order_relaxed);
                blind.store(true, std::memory_order_relaxed);
                return false;
            }
            more = visit(h, *sight, now, objects) == Visit::unfinished;
            if (more) break;
        }
        ++slot;
        ++looked;
    }
    next_node.store(node, std::memory_order_relaxed);
    next_slot.store(slot, std::memory_order_relaxed);
    return more;
}

void visit_all() {
    const os::WaitSight sight;
    if (!sight.sees()) return;
    const std::uint32_t now = os::milliseconds();
    for_each_thread_heap([&](ThreadHeap* h) {
        std::uint32_t all = ~std::uint32_t{0};
        if (h != attached_heap && h->has_worked.load(std::memory_order_relaxed)) visit(h, sight, now, all);
    });
}

}  // namespace numalloc
