// Maintenance on threads' slow paths, because the library has no thread of its own: returns idle lists, sends other
// nodes' objects home, and purges. The callers hold no lock.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// Called inside the fork gate on each slow path of `h`, the caller's heap. Some calls do a small part of the work.
void housekeeping(ThreadHeap* h);
// Postpones by a period the work on other threads' heaps and on the node: for the child of a fork.
void put_off_housekeeping();

// Sends home the remote caches, of all threads, whose oldest object has waited for `age` milliseconds.
void send_quiet_remote_caches(std::uint32_t age);

// Requests that all other threads flush their lists at one of their next slow paths. A sleeping thread keeps its lists
// until then.
void ask_others_to_flush();

// Set by a floor above: a function that each full round of housekeeping calls, on its thread, without a lock.
extern std::atomic<void (*)()> at_housekeeping;

}  // namespace numalloc
