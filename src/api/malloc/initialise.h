// The first malloc of the process, and of each thread.
#pragma once

#include "heap/thread/attach.h"
#include "placement/memory_home.h"

namespace numalloc::api {

// Starts the library if needed; call it before Inside, because libc takes locks of its own for it. false if the process
// has no heap (no address space, or a sanitizer's).
bool awake_slow();
inline bool awake() { return NUMALLOC_LIKELY(attached_heap != &no_heap) || awake_slow(); }

// The calling thread's heap, made if it has none yet and moved if its thread follows the CPU.
// &no_heap where there is none to have: a thread that has ended, or no memory for one. nullptr
// where it is not awake().
ThreadHeap* thread_heap_slow();

// Before whatever is no allocation: the library knows the machine afterwards.
void wake();

// The calling thread's heap moves to where its memory has to come from now.
inline void settle_heap() {
    if (attached_heap != &no_heap) rehome_current_thread(placement::memory_home());
    thread_spill_limit = placement::thread_spill_limit();
}

// The node for a thread without a heap.
NodeId node_without_heap();

}  // namespace numalloc::api
