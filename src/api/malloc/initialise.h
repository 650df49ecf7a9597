// The start of the library at the first malloc of the process, and of each thread.
#pragma once

#include "heap/thread/attach.h"
#include "placement/memory_home.h"

namespace numalloc::api {

// Starts the library if needed. Must be called before os::Inside, because the start takes locks of libc. Returns false
// if the process has no heap (no address space, or a sanitizer).
bool awake_slow();
inline bool awake() { return NUMALLOC_LIKELY(attached_heap != &no_heap) || awake_slow(); }

// The calling thread's heap, created if it has none, and moved if the thread follows its CPU. &no_heap if the thread
// has ended or there is no memory. nullptr if the library is not awake(). `wanted`: bytes that it is wanted for.
ThreadHeap* thread_heap_slow(Bytes wanted = 0);

// Starts the library for a call that does not allocate. Afterwards the topology is known.
void wake();

// Moves the calling thread's heap to the node from which its memory must come now.
inline void settle_heap() {
    if (attached_heap != &no_heap) rehome_current_thread(placement::memory_home());
    thread_spill_limit = placement::thread_spill_limit();
}

// The node that serves a thread without a heap.
NodeId node_without_heap();

}  // namespace numalloc::api
