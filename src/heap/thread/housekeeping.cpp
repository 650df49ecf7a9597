#include "heap/thread/housekeeping.h"

#include "heap/thread/deferred.h"
#include "heap/thread/hand_over.h"
#include "heap/thread/held.h"
#include "heap/thread/limit.h"
#include "os/clock.h"

namespace numalloc {

constinit std::atomic<void (*)()> at_housekeeping{nullptr};

namespace {

std::atomic<std::uint32_t> trims{0};  // calls of ask_others_to_flush()
std::atomic<std::uint32_t> next_housekeeping{0};
std::atomic<std::uint32_t> next_purge{0};
std::atomic<bool> more_to_purge{false};

// Whether the time `next` was reached at least `after` milliseconds ago. Returns true to one thread, and sets `next` to
// a period from now. Times are 32 bits: one that lies more than a period ahead has been reached long ago, half a round
// of the clock or more.
bool is_due(std::atomic<std::uint32_t>& next, std::uint32_t now, std::uint32_t period, std::uint32_t after = 0) {
    std::uint32_t at = next.load(std::memory_order_relaxed);
    return at + after - now - 1 >= period + after &&
           next.compare_exchange_strong(at, now + period, std::memory_order_relaxed);
}

// A program that has moved on to other sizes leaves lists behind, and each object in them holds its whole bag. Inspects
// the next class: a list with the same head as at the last inspection (a round ago, or in hold_less()) is idle and goes
// back to its bags. A list used only by alternating malloc and free has the same head, too: giving it back is harmless.
void hand_over_idle_class(ThreadHeap* h) {
    const unsigned c = h->next_to_look_at;
    h->next_to_look_at = c + 1 < class_count ? c + 1 : 1;
    if (h->head[c] == &end_of_list) return;
    ThreadHeap::Lists& s = h->lists[c];
    if (s.seen == h->head[c]) {
        hand_over_class(h, c, To::bags);
        s.capacity = 0;
    }
    s.seen = h->head[c];
}

// Returns objects in idle rings to their bags, and pages of objects that have been idle there.
void return_idle(NodeHeap* node, std::uint32_t now, IdlePart& part) {
    node->drain(true);
    const std::int32_t delay = load_relaxed(process_heap.options().purge_delay);
    if (delay >= 0) node->return_idle_pages(now, static_cast<std::uint32_t>(delay), part);
}

// For the nodes whose own threads have not done it in time.
void return_idle_of_others(std::uint32_t now) {
    IdlePart part;
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* const node = process_heap.opened(NodeId{n});
        if (node != nullptr &&
            is_due(node->next_drain, now, policy::housekeeping::period, policy::housekeeping::left_to_own_threads))
            return_idle(node, now, part);
    }
}

void full_round(ThreadHeap* h, std::uint32_t now) {
    for (unsigned i = 0; i < class_count / policy::housekeeping::classes_part; ++i) hand_over_idle_class(h);
    send_quiet_remote_caches(policy::housekeeping::period);
    process_heap.give_back_thread_heaps();
    return_idle_of_others(now);
    more_to_purge.store(process_heap.purge_due() > 0, std::memory_order_relaxed);
    if (const auto also = at_housekeeping.load(std::memory_order_acquire); also != nullptr) also();
}

}  // namespace

void flush_lists(ThreadHeap* h) {
    for (unsigned c = 1; c < class_count; ++c) {
        hand_over_class(h, c, To::bags);
        h->lists[c].capacity = 0;
    }
}

void housekeeping(ThreadHeap* h) {
    keep_within_limit(h);
    if (++h->slow_paths % policy::housekeeping::slow_paths_per_look != 0) return;
    const std::uint32_t trimmed = trims.load(std::memory_order_relaxed);
    if (NUMALLOC_UNLIKELY(h->trims_seen != trimmed)) {  // another thread has called malloc_trim()
        h->trims_seen = trimmed;
        flush_lists(h);
    }
    hand_over_idle_class(h);
    if (h->slow_paths % policy::housekeeping::slow_paths_per_clock != 0 &&
        !more_to_purge.load(std::memory_order_relaxed))
        return;
    if (h->slow_paths % policy::housekeeping::slow_paths_per_grant == 0) return_grants(h);
    const std::uint32_t now = os::milliseconds();
    // The full round first, and the drain last: where slow paths are rare each finds all of them due, and a round
    // purges and drains what is overdue, too.
    if (is_due(next_housekeeping, now, policy::housekeeping::period)) return full_round(h, now);
    if (more_to_purge.load(std::memory_order_relaxed) && is_due(next_purge, now, policy::housekeeping::busy_period))
        return more_to_purge.store(process_heap.purge_due() > 0, std::memory_order_relaxed);
    IdlePart part;
    if (is_due(h->home->next_drain, now, policy::housekeeping::period)) return_idle(h->home, now, part);
}

void housekeeping_after_cheap_path(ThreadHeap* h) {
    const std::uint32_t now = os::milliseconds();
    if (h->last_cheap_path == now) h->cheap_paths_to_pass = policy::housekeeping::cheap_paths_passed;
    h->last_cheap_path = now;
    housekeeping(h);
}

void housekeeping_after_thread(NodeHeap* home) {
    const std::uint32_t left = home->slots.taken();
    if (!home->ended.many(left) || !home->ended.are_due(left, os::milliseconds())) return;
    home->ended.on_start(home->slots.taken());  // those that started since `left` was read
    home->drain(false);
}

void put_off_housekeeping() {
    const std::uint32_t now = os::milliseconds();
    next_housekeeping.store(now + policy::housekeeping::period, std::memory_order_relaxed);
    if (attached_heap != &no_heap)
        attached_heap->home->next_drain.store(now + policy::housekeeping::period, std::memory_order_relaxed);
    more_to_purge.store(false, std::memory_order_relaxed);
}

void ask_others_to_flush() {
    const std::uint32_t now = trims.fetch_add(1, std::memory_order_relaxed) + 1;
    if (ThreadHeap* const h = attached_heap; h != &no_heap) h->trims_seen = now;
}

Bytes return_free_memory() {
    {
        const os::Inside inside;
        if (!inside) return 0;
        defer_side_trim();
    }
    flush_thread();
    ask_others_to_flush();
    send_quiet_remote_caches(0);
    return process_heap.purge_all();
}

void send_quiet_remote_caches(std::uint32_t age) {
    if (process_heap.heaps() == 1) return;  // no other node's objects
    for_each_thread_heap([=](ThreadHeap* h) { h->remote_cache.flush_if_older(age); });
}

}  // namespace numalloc
