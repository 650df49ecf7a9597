// Work of callers that could not take the heap's locks (heap/space/side.h): frees, heaps of threads that ended, and
// work that a fork's handlers leave to other threads. The next slow path of any thread does it.
#pragma once

#include <atomic>

#include "heap/thread/hot.h"

namespace numalloc {

struct Deferred;
extern std::atomic<Deferred*> deferred;

inline bool any_deferred() { return NUMALLOC_UNLIKELY(deferred.load(std::memory_order_relaxed) != nullptr); }

// Records a free for free_object(). Takes no lock. false: no memory for the record, and nothing has changed.
bool defer_free(ThreadHeap* h, void* p, Pushed why, const char* call);

// Records the heap of the calling thread, which has detached from it. Without memory for the record the heap is lost.
void defer_detach(ThreadHeap* h);

// Records that the side heap must be trimmed, for a fork's handlers: trimming may call a library's replacement of
// munmap(), and the library may hold that replacement's lock during the fork.
void defer_side_trim();

// Completes all recorded frees of bound heaps' objects, for a caller that will inspect or destroy such a heap. Waits
// for a fork in progress. Does nothing within a LibcCall, and in a signal handler that interrupted the heap.
void catch_up();
// The same, but it returns false where it would have to wait for a fork.
bool try_catch_up();

// Does all recorded work that no other thread is doing. The caller is inside the fork gate and not in the middle of
// changing `h`, its own heap or no_heap.
void run_deferred(ThreadHeap* h);

}  // namespace numalloc
