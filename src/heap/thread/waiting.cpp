#include "heap/thread/waiting.h"

#include <optional>

#include "heap/thread/lists.h"
#include "os/affinity.h"
#include "os/clock.h"

namespace numalloc {

namespace {

std::atomic<std::uint32_t> next_node{0};
std::atomic<std::uint32_t> next_slot{0};

bool reached(std::uint32_t now, std::uint32_t at) { return static_cast<std::int32_t>(now - at) >= 0; }

// Neither the caller's own, nor of a thread that this process does not have.
bool may_be_visited(const ThreadHeap* h) {
    return h->in_use.load(std::memory_order_acquire) && h != attached_heap &&
           h->generation.load(std::memory_order_relaxed) == os::fork_gate.generation();
}

bool has_waited(const ThreadHeap* h, std::uint32_t now) {
    const std::uint32_t last = h->last_slow_path.load(std::memory_order_relaxed);
    return reached(now, last + policy::long_wait) && last != h->visited_at.load(std::memory_order_relaxed) &&
           reached(now, h->next_visit.load(std::memory_order_relaxed));
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
    if (h->pointers[0] == nullptr || h->pointers[1] == nullptr) return Visit::in_vain;
    if (!os::has_thread_local(h->thread, h->pointers[0], &this_thread_heap)) return Visit::in_vain;
    if (!point(h->pointers[0], h, &no_heap)) return Visit::in_vain;
    const bool has_operators = point(h->pointers[1], h, &no_heap);
    const Visit visit = sight.waits(h->thread, h->blocked_at_start) ? give_what_it_holds(h, objects) : Visit::in_vain;
    if (has_operators) point(h->pointers[1], &no_heap, h);
    point(h->pointers[0], &no_heap, h);
    return visit;
}

Visit visit(ThreadHeap* h, const os::WaitSight& sight, std::uint32_t now, std::uint32_t& objects) NUMALLOC_EXCLUDES(h->visit) {
    if (!h->visit.try_lock()) return Visit::in_vain;
    Visit result = Visit::in_vain;
    if (may_be_visited(h)) {
        const std::uint32_t last = h->last_slow_path.load(std::memory_order_relaxed);
        result = give_if_waiting(h, sight, objects);
        if (result == Visit::in_vain) {
            h->visit_pause = min_of(max_of(2 * h->visit_pause, policy::shortest_pause), policy::longest_pause);
            h->next_visit.store(now + h->visit_pause, std::memory_order_relaxed);
        } else {
            h->visit_pause = 0;
            if (result == Visit::done) h->visited_at.store(last, std::memory_order_relaxed);
        }
    }
    h->visit.unlock();
    return result;
}

}  // namespace

void allow_visits(os::Signals blocked_at_start) {
    ThreadHeap* const h = attached_heap;
    if (h == &no_heap) return;
    os::Guard guard(h->visit);
    h->blocked_at_start = blocked_at_start;
    h->pointers[0] = &this_thread_heap;
    h->pointers[1] = &this_thread_operators;
    const std::uint32_t now = os::milliseconds();
    h->last_slow_path.store(now, std::memory_order_relaxed);
    h->visited_at.store(now, std::memory_order_relaxed);
}

void end_visits(ThreadHeap* h) {
    os::Guard guard(h->visit);
    h->pointers[0] = h->pointers[1] = nullptr;
}

ThreadHeap* own_heap() {
    if (this_thread_heap == &no_heap && attached_heap != &no_heap) {
        attached_heap->visit.lock();
        attached_heap->visit.unlock();
    }
    return attached_heap;
}

bool visit_some(std::uint32_t now) {
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
            if (!sight->sees()) return false;
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
        if (h != attached_heap) visit(h, sight, now, all);
    });
}

}  // namespace numalloc
