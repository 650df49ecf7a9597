#include "heap/thread/lists.h"
#include "os/clock.h"

namespace numalloc {

constinit std::atomic<void (*)()> at_housekeeping{nullptr};
constinit std::atomic<std::uint32_t> trims{0};

namespace {

std::atomic<std::uint32_t> next_housekeeping{0};
std::atomic<std::uint32_t> next_purge{0};
std::atomic<bool> more_to_purge{false};

// Whether the time has come, for one thread, and was there `after` milliseconds ago. `next` is at most a period ahead,
// or it is old.
bool is_due(std::atomic<std::uint32_t>& next, std::uint32_t now, std::uint32_t period, std::uint32_t after = 0) {
    std::uint32_t at = next.load(std::memory_order_relaxed);
    return at + after - now - 1 >= period + after &&
           next.compare_exchange_strong(at, now + period, std::memory_order_relaxed);
}

// A program that has moved on to other sizes leaves lists behind, and each object in them holds
// its whole bag. One class at a time, in turn: a list whose head is where it was at the last look (a round ago, or in
// hold_less()) is idle, or, harmlessly, was used in pairs, and goes back to its bags.
void give_idle_class(ThreadHeap* h) {
    const unsigned c = h->next_to_look_at;
    h->next_to_look_at = c + 1 < class_count ? c + 1 : 1;
    if (h->head[c] == &end_of_list) return;
    ThreadHeap::Lists& s = h->lists[c];
    if (s.seen == h->head[c]) {
        give_list(h, c, To::bags);
        s.capacity = 0;
    }
    s.seen = h->head[c];
}

// malloc_trim() was called by another thread.
void flush_lists(ThreadHeap* h, std::uint32_t trims) {
    h->trims_seen = trims;
    for (unsigned c = 1; c < class_count; ++c) {
        give_list(h, c, To::bags);
        h->lists[c].capacity = 0;
    }
}

// Takes grants until they cover what the thread holds.
void ask_for_more(ThreadHeap* h) {
    while (h->held > h->may_hold && may_hold_by_work(h) > policy::any_may_hold + h->granted) {
        const Bytes granted = h->home->list_budget.grant(h->granted, h->home->slots.taken());
        if (granted == h->granted) return;
        set_granted(h, granted);
    }
}

// Returns grants that the thread does not need, and its excess over a share if the budget is short. Updates the limit.
void keep_less(ThreadHeap* h) {
    Bytes kept = h->home->list_budget.kept(h->granted, h->home->slots.taken());
    while (kept > 0 && h->held + 2 * policy::granted_to_lists <= policy::any_may_hold + kept)
        kept -= policy::granted_to_lists;
    if (kept != h->granted) h->home->list_budget.take_back(h->granted - kept);
    set_granted(h, kept);
}

// A list is made with room for a batch beside the objects that it begins with. Of a thread near its limit it has room
// for a batch in all, which suffices for a thread that frees what it allocated itself. Of small objects it has room for
// one more than it has: the object that the program has just then would fill it, and a full list is sealed, which
// doubles what the class holds.
void keep_less_room(ThreadHeap* h) {
    for (unsigned c = class_count; (c = h->filled.previous(c)) < class_count;) {
        ThreadHeap::Lists& s = h->lists[c];
        const std::uint32_t objects = length(h, c);
        const std::uint32_t one_more = shape_of(ClassId{c}).size <= policy::room_for_one_more ? 1 : 0;
        const std::uint32_t limit = max_of(objects + one_more, std::uint32_t{s.capacity});
        if (limit >= s.limit) continue;
        s.limit = static_cast<std::uint16_t>(limit);
        h->room[c] = static_cast<std::int32_t>(limit - objects);
        count_held(h, c);
    }
}

// The nodes that none of their own threads has come by for.
void drain_for_others(std::uint32_t now) {
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* const node = process_heap.opened(NodeId{n});
        if (node != nullptr && is_due(node->next_drain, now, policy::housekeeping_period, policy::left_to_own_threads))
            node->drain(true);
    }
}

void flush_class(ThreadHeap* h, unsigned c) {
    give_list(h, c, To::bags);
    h->home->of(ClassId{c}).give_carved(h->shard);
    h->lists[c].capacity = 0;
    h->filled.remove(c);
}

}  // namespace

// Lists that were not used since the last look go first, then others, until a little room is left: what a busy thread
// flushes it soon fetches again. In both turns the largest classes are the first: a thread that uses every size once
// reuses their pages for its next class.
void hold_less(ThreadHeap* h, ClassId busy_with) {
    ask_for_more(h);
    if (h->held <= h->may_hold) return;
    keep_less_room(h);
    if (h->held <= h->may_hold) return;
    const Bytes without_idle = policy::held_without_idle.part_of(h->may_hold);
    for (unsigned c = class_count; h->held > without_idle && (c = h->filled.previous(c)) < class_count;) {
        ThreadHeap::Lists& s = h->lists[c];
        if (c != busy_with.value && s.seen == h->head[c]) flush_class(h, c);
        s.seen = h->head[c];
    }
    const Bytes busy = policy::held_by_busy.part_of(h->may_hold);
    for (unsigned c = class_count; h->held > busy && (c = h->filled.previous(c)) < class_count;)
        if (c != busy_with.value) flush_class(h, c);
}

void housekeeping(ThreadHeap* h) {
    if (++h->slow_paths % policy::slow_paths_per_look != 0) return;
    const std::uint32_t trimmed = trims.load(std::memory_order_relaxed);
    if (NUMALLOC_UNLIKELY(h->trims_seen != trimmed)) flush_lists(h, trimmed);
    give_idle_class(h);
    if (h->slow_paths % policy::slow_paths_per_clock != 0) return;
    if (h->slow_paths % policy::slow_paths_per_grant == 0) keep_less(h);
    const std::uint32_t now = os::milliseconds();
    if (is_due(h->home->next_drain, now, policy::housekeeping_period)) return h->home->drain(true);
    if (more_to_purge.load(std::memory_order_relaxed) && is_due(next_purge, now, policy::busy_period))
        return more_to_purge.store(process_heap.purge_due() > 0, std::memory_order_relaxed);
    if (!is_due(next_housekeeping, now, policy::housekeeping_period)) return;
    for (unsigned i = 0; i < class_count / policy::classes_a_period; ++i) give_idle_class(h);
    send_quiet_remote_caches(policy::housekeeping_period);
    process_heap.give_back_thread_heaps();
    drain_for_others(now);
    if (process_heap.purge_due() > 0) more_to_purge.store(true, std::memory_order_relaxed);
    if (const auto also = at_housekeeping.load(std::memory_order_acquire); also != nullptr) also();
}

void put_off_housekeeping() {
    const std::uint32_t now = os::milliseconds();
    next_housekeeping.store(now + policy::housekeeping_period, std::memory_order_relaxed);
    if (attached_heap != &no_heap)
        attached_heap->home->next_drain.store(now + policy::housekeeping_period, std::memory_order_relaxed);
    more_to_purge.store(false, std::memory_order_relaxed);
}

void send_quiet_remote_caches(std::uint32_t age) {
    const std::uint32_t now = os::milliseconds();
    for_each_thread_heap([=](ThreadHeap* h) { h->remote_cache.flush_if_older(now, age); });
}

}  // namespace numalloc
