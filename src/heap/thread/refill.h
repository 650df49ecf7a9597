// malloc's slow path: refills a thread's current list, or allocates without one. The caller is inside the fork gate and
// holds no lock.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// Returns an object of the class after pop() found none. `asked`: the bytes of the request. `h` is not &no_heap.
Allocation refill(ThreadHeap* h, ClassId c, Bytes asked);

// Returns an object of the class from node `n`, for a request of `asked` bytes; spills like ProcessHeap::take_small()
// if the node is full. `h` may be &no_heap.
Allocation allocate_on(ThreadHeap* h, NodeId n, ClassId c, Bytes asked);

// The same for a thread that has no heap, from the class's shard 0.
Allocation allocate_without_heap(NodeId n, ClassId c, Bytes asked);

// Returns a big object from node `n`, or from another if it is full, and notes the thread that allocated it. `h` may be
// &no_heap.
void* allocate_big(ThreadHeap* h, NodeId n, Bytes bytes, Bytes alignment);

// The most objects of a batch for this thread: the class's batch, fewer on a node with many threads.
std::uint32_t batch_limit(const ThreadHeap* h, ClassId c);
// The length of the class's next batch. Lists begin short and double with every refill, up to batch_limit().
std::uint16_t next_capacity(const ThreadHeap* h, ClassId c);

// refill() without sampling: returns the last object of the current list, or one of a batch from the node.
Allocation refill_unsampled(ThreadHeap* h, ClassId c);

}  // namespace numalloc
