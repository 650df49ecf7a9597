// What the slow paths do with a thread's lists: for the files of this folder.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

inline void set_current(ThreadHeap* h, unsigned c, Object* list, std::uint32_t count, std::uint32_t limit) {
    h->head[c] = list;
    h->lists[c].limit = static_cast<std::uint16_t>(limit);
    h->room[c] = static_cast<std::int32_t>(limit - count);
}

inline void set_empty(ThreadHeap* h, unsigned c) { set_current(h, c, &end_of_list, 0, 0); }

inline std::uint32_t length(const ThreadHeap* h, unsigned c) {
    return static_cast<std::uint32_t>(h->lists[c].limit - h->room[c]);
}

// Of a thread that the heap profile watches: its mallocs of the class before the next that is recorded. What changes
// the lists leaves it as it is.
inline std::int32_t before_record(const ThreadHeap* h, unsigned c) {
    return h->profile->left[c] + static_cast<std::int32_t>(length(h, c));
}
inline void set_before_record(ThreadHeap* h, unsigned c, std::int32_t mallocs) {
    h->profile->left[c] = mallocs - static_cast<std::int32_t>(length(h, c));
}

//   held == sum over the classes of lists[c].held * size
//   lists[c].held == limit + sealed_count of c when it last had a slow path, which is at least what its lists hold
inline void count_held(ThreadHeap* h, unsigned c) {
    ThreadHeap::Lists& s = h->lists[c];
    const std::uint32_t now = s.limit + (s.sealed != nullptr ? std::uint32_t{s.sealed_count} : 0U);
    if (now == s.held) return;
    h->filled.add(c);
    h->held += (Bytes{now} - s.held) * shape_of(ClassId{c}).size;
    s.held = static_cast<std::uint16_t>(now);
}

// Where a list goes: into the ring; into it if it is the only one of its shard, as a thread ends; or past it.
enum class To { ring, empty_ring, bags };

// To the node; what ClassHeap::put() says the thread should keep from now on.
std::uint32_t give_batch(const ThreadHeap* h, ClassId c, Batch list, To to);

// All that the thread holds of a class, and of all classes and other nodes.
void give_list(ThreadHeap* h, unsigned c, To to);
void give_all(ThreadHeap* h, To to);

// A thread's limit doubles as it works; later its grant decides.
inline Bytes may_hold_by_work(const ThreadHeap* h) {
    return policy::any_may_hold << min_of(h->slow_paths / policy::slow_paths_to_double, policy::most_doublings);
}
inline void set_granted(ThreadHeap* h, Bytes granted) {
    h->granted = granted;
    h->may_hold = min_of(may_hold_by_work(h), policy::any_may_hold + granted);
}

// Raises the thread's limit if its node grants more; else flushes lists of classes other than `busy_with`.
void hold_less(ThreadHeap* h, ClassId busy_with);
// Called after each change of the class's lists.
inline void bound_lists(ThreadHeap* h, ClassId c) {
    count_held(h, c.value);
    if (NUMALLOC_UNLIKELY(h->held > h->may_hold)) hold_less(h, c);
}

// How often all threads were asked to flush their lists.
extern std::atomic<std::uint32_t> trims;

// What a slow path does beside its own work: idle lists, quiet remote caches, idle memory.
void housekeeping(ThreadHeap* h);
// What concerns others' heaps begins a period later than now.
void put_off_housekeeping();

}  // namespace numalloc
