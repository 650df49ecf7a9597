// What a thread's slow paths do beside their own work: they return idle lists, send other nodes' objects home, and
// return idle memory to the kernel. There is no thread of ours that does it.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// Called on each slow path; does one small part of the work on some of them.
void housekeeping(ThreadHeap* h);
// Postpones by a period what concerns the heaps of others.
void put_off_housekeeping();

// Sends home the remote frees of all threads that have added none for `age` milliseconds.
void send_quiet_remote_caches(std::uint32_t age);

// Asks all other threads to flush their lists at one of their next slow paths. A thread that waits keeps its lists
// until then.
void ask_others_to_flush();

// Called by each round of housekeeping, on the thread that does it, which holds no lock: for a floor above.
extern std::atomic<void (*)()> at_housekeeping;

}  // namespace numalloc
