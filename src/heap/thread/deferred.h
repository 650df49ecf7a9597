// Work that could not be done because the heap's locks were out of reach (heap/space/side.h): frees, heaps of threads
// that ended, and what a fork's handlers leave to others. The next slow path of any thread does it.
#pragma once

#include <atomic>

#include "heap/thread/hot.h"

namespace numalloc {

struct Deferred;
extern std::atomic<Deferred*> deferred;

inline bool any_deferred() { return NUMALLOC_UNLIKELY(deferred.load(std::memory_order_relaxed) != nullptr); }

// Like free_object(), without a lock. false: no memory to record it, and nothing has changed.
bool defer_free(ThreadHeap* h, void* p, Pushed why, const char* call);

// Records the heap of the calling thread, which has detached from it. Without memory for the record the heap is lost.
void defer_detach(ThreadHeap* h);

// Trims the side heap, which may call a library's function in place of munmap(): not in a fork's handler, where the
// library may hold the lock that it takes there.
void defer_side_trim();

// When it returns all recorded frees of objects of programs' own heaps are done: the caller looks at such a heap, or
// destroys it. Waits for a fork in progress. Nothing happens within a LibcCall, and in a signal handler that
// interrupted the heap.
void catch_up();
// The same, but it returns false where it would have to wait for a fork.
bool try_catch_up();

// Does all recorded work that no other thread is doing. The caller is inside the fork gate and not in the middle of
// changing `h`, its own heap or no_heap.
void run_deferred(ThreadHeap* h);

}  // namespace numalloc
