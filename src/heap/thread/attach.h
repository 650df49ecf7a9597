// Creates, moves and returns the heap of a thread. Reclaims the heaps of threads that ended unnoticed, or that a fork's
// child does not have. All functions but hide_heap() take locks; the caller holds none.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// What another part of the library, which the heap does not know, calls the calling thread; and where it learns that a
// thread so called has ended unnoticed. Both are set before the first thread is attached, or not at all.
struct OwnerNames {
    OwnerName (*of_caller)();
    void (*died)(OwnerName);  // called without a lock; also for threads whose end was noticed
};
extern OwnerNames owner_names;

// Creates the calling thread's heap on the node. Returns false if there is no memory for it.
bool attach_thread(NodeId n);

// Hands over everything that the calling thread holds, and returns its heap. During a fork deferred.h does this later.
void detach_thread();

// Hides the calling thread's heap from the fast paths, so that the next malloc or free is slow, or shows it again. For
// os::at_libc_call, and for a thread that was moved. Safe in a signal handler that interrupted malloc or free.
void hide_heap(bool hidden);

// Flushes to the bags and returns a heap that defer_detach() recorded. Any thread may call it.
void release_deferred_heap(ThreadHeap* h);

// Moves the calling thread to another node: it allocates there from now on, and what it holds returns to its old node.
// A thread without a heap is left alone: its first allocation creates one on its node.
void rehome_current_thread(NodeId node);

// In the child of a fork: heaps of the parent's other threads may be reused by new threads. What those threads held is
// lost to the child, except their remote caches, which housekeeping finds.
void forget_other_threads();

}  // namespace numalloc
