// How much the lists of a thread may hold. Each thread may hold policy::lists::any_may_hold bytes, and beyond that its
// grant from the node's list_budget (heap/node/list_budget.h). Called on slow paths of the heap's thread.
//
//   held == sum over the classes of lists[c].held * size
//   lists[c].held == limit + sealed_count at the last slow path of class c: at least what its lists hold
//   may_hold == min(may_hold_by_work, any_may_hold + granted)
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

namespace policy::lists {

// The limit of a thread's lists doubles after every 64 slow paths, 16 times at most, as far as the node grants memory:
// a new thread that does little work holds little.
constexpr std::uint32_t slow_paths_to_double = 64;
constexpr std::uint32_t most_doublings = 16;
// Objects of up to 2 KiB are a small part of any limit. A thread near its limit keeps room for one more in their lists,
// so that the next free does not seal the list, and fetches batches of them. Larger ones it fetches one at a time: for
// a batch it would flush other lists.
constexpr Bytes small = size_for(2 * KiB);

}  // namespace policy::lists

// Updates `held` after a change of the class's lists.
inline void count_held(ThreadHeap* h, unsigned c) {
    ThreadHeap::Lists& s = h->lists[c];
    const std::uint32_t now = s.limit + (s.sealed != nullptr ? std::uint32_t{s.sealed_count} : 0U);
    if (now == s.held) return;
    h->filled.add(c);
    h->held += (Bytes{now} - s.held) * shape_of(ClassId{c}).size;
    s.held = static_cast<std::uint16_t>(now);
}

// A thread's limit doubles as it works; later its grant decides.
inline Bytes may_hold_by_work(const ThreadHeap* h) {
    return policy::lists::any_may_hold << min_of(h->slow_paths / policy::lists::slow_paths_to_double,
                                                 policy::lists::most_doublings);
}
inline void set_granted(ThreadHeap* h, Bytes granted) {
    h->granted = granted;
    h->may_hold = min_of(may_hold_by_work(h), policy::lists::any_may_hold + granted);
}

// Raises the thread's limit if its node grants more; else flushes lists of classes other than `busy_with`.
void hold_less(ThreadHeap* h, ClassId busy_with);
// Called after each change of the class's lists.
inline void bound_lists(ThreadHeap* h, ClassId c) {
    count_held(h, c.value);
    if (NUMALLOC_UNLIKELY(h->held > h->may_hold)) hold_less(h, c);
}

// Returns grants that the thread does not need, and its excess over a share if the budget is short.
void return_grants(ThreadHeap* h);

}  // namespace numalloc
