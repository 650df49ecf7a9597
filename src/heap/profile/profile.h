// The heap profile: which stacks allocate how much, on which nodes their threads run, where the pages are, and who
// frees. It is on from the start of the process or never, and then costs the fast paths of malloc nothing:
//
//   malloc  small   the thread's list runs dry right before the malloc that is to be recorded, which thus takes the
//   slow path
//           other   chance decides: these take a slow path anyway
//   free            a recorded small object lies in a bag of its own kind, a bound heap's, which free finds in no
//   class;
//                   of big objects and those of the program's own heaps each free looks for a record
//
// How long a thread's lists may be is counted as objects come into them. So frees must not be fast while the profile is
// on: that is what it costs, besides the records.
#pragma once

#include "heap/process/locate.h"
#include "heap/profile/thread_profile.h"

namespace numalloc::profile {

extern bool switched_on;
// Constant once the process has its heap.
inline bool on() { return NUMALLOC_UNLIKELY(switched_on); }

// Before the first thread is attached; `period` bytes are one record on average. false with no memory.
bool start(Bytes period);

// The next distance of a class.
std::int32_t draw(ThreadProfile& thread, ClassId c);
// Whether to record an object of `size` bytes that does not come from the thread's lists. `thread` may be nullptr.
bool chooses(ThreadProfile* thread, Bytes size);

// A small object that is recorded, on the node; `asked` bytes were asked for. Nothing with no memory, or while the
// thread is recording another: the caller takes another one.
Allocation allocate(ThreadProfile* thread, NodeId node, ClassId c, Bytes asked);
// Decides about, and records, a big object or one of the program's own heap.
void allocated(ThreadProfile* thread, const void* p, Bytes asked, const BoundHeap* heap = nullptr);

// An object that is no small one of a class is about to be freed. nullptr, or why it cannot be in use.
const char* freeing(Location at, const void* p);
// All objects of a heap are about to be freed.
void freeing_all(const BoundHeap* heap);

// A small recorded object serves for another size from now on.
void resized(const void* p, Bytes asked);
// ProcessHeap::resize(), for a profile a free and a malloc.
void* resize(ThreadProfile* thread, Location at, Bytes n, bool may_stay, NodeId there);

// Whether the heap is the profile's own, for recorded small objects: to the program they are malloc's.
bool owns(const BoundHeap* heap);

}  // namespace numalloc::profile
