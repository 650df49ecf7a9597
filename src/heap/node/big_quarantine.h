// The hardened library's quarantine for freed big objects. free() returns their pages to the system and removes access
// to their addresses, so that a later access faults. An object stays until another one takes its place at random.
//
//   free -> no access, a random place -> the object that was there -> its node's page heap
//
// A place holds an object's address, or 0. A free makes two system calls, and a third if it replaces an object. Memory
// that is used again faults in page by page.
#pragma once

#include "heap/node/process_heap.h"

namespace numalloc::big_quarantine {

// Puts a freed big object into the quarantine. Returns false, with nothing changed, if the object is large for its node
// (policy::quarantine::big_part) or the system refuses.
bool put(Location at);

// The node's objects in the quarantine, which its page heap counts as in use. Takes no lock: approximate while other
// threads free.
struct Resting {
    std::uint64_t objects = 0, bags = 0;
};
Resting of(const NodeHeap& node);

// Returns all objects in the quarantine to their page heaps. false if there were none.
bool empty();

}  // namespace numalloc::big_quarantine
