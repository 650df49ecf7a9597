// The heap that serves a thread's malloc: that of its home node, unless the process (options `memory` and `interleave`)
// or the thread itself has chosen another placement.
//
// Thread-safe; keeps errno. Only set_thread_memory(), and home_node() where it must, take a lock or make a system call.
#pragma once

#include "options/memory_placement.h"
#include "os/topology.h"

namespace numalloc::placement {

// Called once, after init_options() and os::init_topology(). Prints one line on stderr if a node cannot be used, and
// memory is local then; and if the option `interleave` has no effect because `memory` names nodes.
void init_memory_home();

// The node that serves the calling thread's malloc, or Topology::interleaved(). Use it instead of home_node().
// `wanted`: bytes that the thread wants to allocate.
NodeId memory_home(Bytes wanted = 0);
// The same for a thread with this home.
NodeId memory_home_from(NodeId home);

// Whether that is the thread's home node and nobody has named another: memory may follow its users.
bool memory_is_local();

// Whether the option `memory` names nodes.
bool process_names_nodes();

// The nodes of the option memory=bind:LIST, the kernel's numbers; empty without it.
const os::NodeMask& bound_nodes();

// Sets the calling thread's own placement; nullptr: the process's. Returns 0, or EINVAL for a node that the machine
// does not have, ENXIO for one that the process may not use, ENOMEM.
int set_thread_memory(const MemoryPlacement* wanted);

// The calling thread's own placement; nullptr if it has none.
const MemoryPlacement* thread_memory();

// The nodes that the calling thread's memory must come from, our numbers; nullptr: all.
const os::NodeMask* thread_spill_limit();

}  // namespace numalloc::placement
