// What was to be given while no lock of the heap's could be had (heap/space/side.h): objects, and heaps of threads that ended. It
// is given when one can be, by the next slow path of any thread.
#pragma once

#include <atomic>

#include "heap/thread/thread_heap.h"

namespace numalloc {

struct LaterFree;
extern std::atomic<LaterFree*> later_frees;

inline bool frees_wait() { return NUMALLOC_UNLIKELY(later_frees.load(std::memory_order_relaxed) != nullptr); }

// As free_slow(), by a caller that is not inside. Takes no lock. false with no memory to note it: nothing has happened.
bool free_later(ThreadHeap* h, void* p, Freed why, const char* call);

// The heap that the calling thread had. Without memory to note it, it is found as that of any thread that ended without a word.
void give_heap_later(ThreadHeap* h);

// By a caller that is inside and in the middle of nothing; `h` is its heap.
void free_what_waits(ThreadHeap* h);

}  // namespace numalloc
