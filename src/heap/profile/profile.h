// The heap profile: which stacks allocate how much, on which nodes their threads run, where the pages are, and which
// nodes free. It is on from the start of the process or never. malloc's fast path has no instruction for it:
//
//   malloc  small   the thread's list runs dry right before the malloc to be recorded, which then takes the slow path
//           other   a random decision for each: these take a slow path anyway
//   free            a recorded small object lies in a bound heap, whose bags have class 0 in the class map;
//                   each free of a big object or of a program's own heap looks for a record
//
// Every object that enters a list is counted, because the count limits the list's length. So all frees take the slow
// path while the profile is on. That and the records are its cost.
#pragma once

#include "heap/node/locate.h"
#include "heap/profile/thread_profile.h"

namespace numalloc::profile {

extern bool switched_on;
// Constant once the process has its heap.
inline bool on() { return NUMALLOC_UNLIKELY(switched_on); }

// Called before the first thread is attached. `period`: bytes per record on average. Returns false without memory.
bool start(Bytes period);

// Draws the number of objects of the class before the next recorded one.
std::int32_t draw(ThreadProfile& thread, ClassId c);
// Whether to record an object of `size` bytes that does not come from the thread's lists. `thread` may be nullptr.
bool chooses(ThreadProfile* thread, Bytes size);

// Allocates and records a small object on the node; `asked`: the requested bytes. Returns no object without memory, or
// while the thread is recording another one: the caller then allocates one that is not recorded.
Allocation allocate(ThreadProfile* thread, NodeId node, ClassId c, Bytes asked);
// Decides whether to record a big object, or one of a program's own heap, and records it.
void allocated(ThreadProfile* thread, const void* p, Bytes asked, const BoundHeap* heap = nullptr);

// Called before the free of an object that has no class in the class map. Returns nullptr, or the reason why it cannot
// be in use.
const char* freeing(Location at, const void* p);
// Called before all objects of a heap are freed.
void freeing_all(const BoundHeap* heap);

// Called when realloc leaves an object where it is: sets the requested bytes of its record, if it has one.
void resized(const void* p, Bytes asked);
// resize_object(), recorded as a free and a malloc.
void* resize(ThreadProfile* thread, const Resize& resize);

// Whether the heap is one of the profile's own, for recorded small objects. To the program these are malloc's.
bool owns(const BoundHeap* heap);

}  // namespace numalloc::profile
