// Moves free objects from a thread's lists to the node: into a ring, or into the bags that they lie in. The thread is
// the caller, or has ended. The caller holds no lock of rank remote_cache or of a later one.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// The destination of a list.
enum class To {
    ring,           // of the shard
    ring_if_empty,  // for a thread that ends; else the bags
    bags,           // those in which the objects lie
};

// Hands a list of the class to the node. Returns how many objects the thread should keep from now on: see
// ClassHeap::put().
std::uint32_t hand_over(const ThreadHeap* h, ClassId c, Batch list, To to);

// The first hands over a class's current and sealed lists; the second all lists, the quarantine and the remote cache.
void hand_over_class(ThreadHeap* h, unsigned c, To to);
void hand_over_all(ThreadHeap* h, To to);

// Frees an object of the thread's node into a current list that is full: the list grows, or it is sealed, and the list
// sealed before is handed over.
void free_into_full_list(ThreadHeap* h, Location at, Object* p);

// Hands over everything that the calling thread holds, to the bags; it keeps its heap. For malloc_trim().
void flush_thread();

}  // namespace numalloc
