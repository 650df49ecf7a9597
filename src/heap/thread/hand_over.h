// Free objects leave a thread's lists: for the ring of its shard, or for the bags that they lie in.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// Where a list goes: into the shard's ring; into the ring only if that is empty, as a thread ends; or into its bags.
enum class To { ring, empty_ring, bags };

// Hands a list of the class to the node. Returns how many objects the thread should keep from now on: see
// ClassHeap::put().
std::uint32_t hand_over(const ThreadHeap* h, ClassId c, Batch list, To to);

// Hands over all objects of a class that the thread holds; and those of all classes, the quarantine and other nodes.
void hand_over_class(ThreadHeap* h, unsigned c, To to);
void hand_over_all(ThreadHeap* h, To to);

// Frees an object of the thread's node whose current list is full: the list grows, or its older half is sealed and what
// was sealed before is handed over.
void free_into_full_list(ThreadHeap* h, Location at, Object* p);

// Hands over what the calling thread holds; it keeps its heap.
void flush_thread();

}  // namespace numalloc
