// Owners of partitioned shared memory: numbers of threads, and the node of each number (JArena).
//
// A thread's number is that of its creation, or the one it gave itself. Once the node of a number has
// been asked for, it stands: threads that have the number, now or later, are placed there; it changes
// only with the thread, when its user's affinity or numalloc_rehome_thread() moves it. For a number
// that no thread has had yet the policy is played through up to it, and what it says is a promise:
// promised threads count like living ones.
//
// Thread-safe; errno is kept. No lock for a number that was asked for before.
#pragma once

#include "base/ids.h"

namespace numalloc::placement {

// Numbers that can be promised and that threads can give themselves.
constexpr int most_owners = 65536;

// The calling thread's number.
int owner_of_caller();

// The calling thread takes the number. *moved: it went to another node, the number's. false for a number
// out of range or without memory.
bool register_owner(int owner, bool* moved);

// The node of an owner; no_node for a number that nobody is or can become. *out_of_memory: the table
// could not be had. *moved as of register_owner(): main is bound with the first question.
NodeId node_of_owner(int owner, bool* out_of_memory, bool* moved);

}  // namespace numalloc::placement
