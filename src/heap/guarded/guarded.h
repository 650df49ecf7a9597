// Guarded objects (heap/space/guarded_slots.h): one in N allocations of up to a page, chosen at random, lies at an edge
// of a page of its own. An access beyond that edge, or after the free, faults at that instruction, and the report
// explains it.
//
// Only malloc's slow path decides, when a list of the thread has run dry: the list that replaces it is at most as long
// as the distance to the next guarded object. Objects that the thread frees join its list and are not counted.
#pragma once

#include "heap/node/locate.h"
#include "heap/profile/sampling.h"

namespace numalloc::guarded {

extern std::uint32_t one_in;
// Constant once the process has its heap.
inline bool on() { return NUMALLOC_UNLIKELY(one_in != 0); }

// Called before the first thread is attached. Returns false without memory.
bool start(std::uint32_t one_in_so_many);

struct Countdown {
    Random random{0};
    std::int32_t left = 0;  // mallocs before the next guarded one
    bool begun = false;
};
void begin(Countdown& countdown);
void draw(Countdown& countdown);

// Returns no object for more than a page, if all slots are in use, or without memory.
Allocation allocate(Countdown& countdown, NodeId node, Bytes asked);
// Ends the program with a report if `p` is not an object in use.
void free(const void* p, const char* call);

}  // namespace numalloc::guarded
