// Where the hardened library keeps big objects that were freed: their memory is the system's again, and whoever touches
// their addresses meets a fault, until chance has chosen one of them to make room for another.
//
//   free -> no access, a place by chance -> who was there -> its node's page heap
//
// A place holds the object's address, or 0. Costs two system calls a free, and a page fault for each page that is used
// again.
#pragma once

#include "heap/process/heap.h"

namespace numalloc::big_quarantine {

// Whether the object is kept. One that is large for its node is not, nor is any where the system refuses.
bool put(Location at);

// What rests here of the node, whose page heap counts it as in use. In passing: neither waits for the other.
struct Resting {
    std::uint64_t objects = 0, bags = 0;
};
Resting of(const NodeHeap& node);

// All go to their page heaps. false: there was none.
bool empty();

}  // namespace numalloc::big_quarantine
