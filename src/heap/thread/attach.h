// A thread's heap from its first allocation to the thread's end, and what becomes of the heaps of threads that a fork's
// child does not have.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// Creates the calling thread's heap on the node. Returns false if there is no memory for it.
bool attach_thread(NodeId n);

// Hands over everything that the calling thread holds. Until attach_thread() its later calls work without a heap.
void detach_thread();

// Detaches the calling thread from its heap while a call of libc runs, and attaches it again: for os::at_libc_call.
void at_libc_call(bool begins);

// What detach_thread() does, by another thread, to a heap that defer_detach() recorded.
void release_deferred_heap(ThreadHeap* h);

// Moves the calling thread to another node: it allocates there from now on, and what it holds returns to its old node.
// A thread without a heap is left alone: its first allocation creates one on its node.
void rehome_current_thread(NodeId node);

// In the child of a fork: heaps of the parent's other threads may be reused by new threads. What those threads held is
// lost to the child, except their remote caches, which housekeeping finds.
void forget_other_threads();

}  // namespace numalloc
