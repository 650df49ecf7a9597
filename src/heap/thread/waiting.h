// Threads that wait hold up to some megabytes each, which nobody uses. Another thread, in its own slow path, gives that
// back for them: it visits.
//
//   visitor                                        the thread that waits
//     lock h->visit                                  asleep in the kernel
//     its this_thread_heap: no_heap
//     the kernel says that it waits                  (wakes: its next malloc or free finds no heap, takes the
//     give what h holds                               slow path, and waits there for the lock)
//     its this_thread_heap: h
//     unlock
//
// A thread reads this_thread_heap once in each malloc and free, and in between sleeps in no call of libc's. So one that
// is seen asleep there after the write cannot be at work on the lists: os/waiting.h. Nothing is asked of it before,
// neither an instruction of its fast paths nor a barrier. A visit costs some 50 us and what the objects take to sort.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// The calling thread may be visited from now on. It has to be detached before it ends.
void allow_visits();
// Waits until a visit is over; there will be no more.
void end_visits(ThreadHeap* h) NUMALLOC_EXCLUDES(h->visit);

// The calling thread's heap, after a visit if there is one; no_heap if it has none.
ThreadHeap* own_heap();

// A part of those that have waited for long; whether there may be more.
bool visit_some(std::uint32_t now);
// All threads that wait just now.
void visit_all();

}  // namespace numalloc
