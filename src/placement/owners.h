// Owners of partitioned shared memory (JArena): numbers of threads, and the node of each number.
//
// A thread's number is its rank in the order of creation, or the number that it chose. The first answer for a number's
// node is kept: threads that have the number, now or later, are placed there. It changes only when its thread moves, by
// its user's affinity or numalloc_rehome_thread(). For a number that no thread has had yet, the policy places all
// numbers up to it. The result is a promise: promised threads count like living ones.
//
// Thread-safe; keeps errno. Takes no lock for a number below most_owners that was asked about before.
#pragma once

#include "base/ids.h"

namespace numalloc::placement {

// Numbers below this can be promised, and threads can choose them.
constexpr int most_owners = 65536;

// The calling thread's number.
int owner_of_caller();

// Sets the calling thread's number. *moved: the thread was moved to the number's node. false if the number is out of
// range or there is no memory.
bool register_owner(int owner, bool* moved);

// The node of an owner; no_node for a number that no thread has or can get. *out_of_memory: there is no memory for the
// table. *moved: the calling thread was bound, which a question does if it was not.
NodeId node_of_owner(int owner, bool* out_of_memory, bool* moved);

}  // namespace numalloc::placement
