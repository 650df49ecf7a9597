// Guarded objects (heap/space/guarded_slots.h): one allocation in N, by chance, of up to a page lies at an edge of a
// page of its own, so that an access beyond it, before it or after its free is a fault at that very instruction, which
// is then explained.
//
// What is asked is asked on the slow path of malloc only, when a list of the thread has run dry: each list that takes
// its place is as long as the distance to the next guarded object at most. What a thread frees joins its list and is
// not counted.
#pragma once

#include "heap/process/locate.h"
#include "heap/profile/sampling.h"

namespace numalloc::guarded {

extern std::uint32_t one_in;
// Constant once the process has its heap.
inline bool on() { return NUMALLOC_UNLIKELY(one_in != 0); }

// Before the first thread is attached. false with no memory.
bool start(std::uint32_t one_in_so_many);

// What a thread counts.
struct Countdown {
    Random random{0};
    std::int32_t left = 0;  // mallocs before the next guarded one
    bool begun = false;
};
void begin(Countdown& countdown);
void draw(Countdown& countdown);

// nullptr for larger ones, where all slots are in use, and with no memory.
Allocation allocate(Countdown& countdown, NodeId node, Bytes asked);
// Ends the program with a report if `p` is no object in use.
void free(const void* p, const char* call);

}  // namespace numalloc::guarded
