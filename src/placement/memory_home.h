// From which heap a thread's malloc is served: the node where it belongs, unless the process (options
// `memory` and `interleave`) or the thread itself wants something else.
//
// Thread-safe; errno is kept; no lock and no system call but what home_node() may need.
#pragma once

#include "options/memory_placement.h"
#include "os/topology.h"

namespace numalloc::placement {

// Once, after init_options() and os::init_topology(). Nodes that cannot be had are one line on stderr,
// and memory is local.
void init_memory_home();

// Instead of home_node(): the node, or Topology::interleaved().
NodeId memory_home();

// The nodes of the option memory=bind:LIST, the kernel's numbers; empty without it.
const os::NodeMask& bound_nodes();

// The calling thread's own placement from now on; nullptr: the process's. 0, or EINVAL for a node that
// the machine does not have, ENXIO for one that the process may not use, ENOMEM.
int set_thread_memory(const MemoryPlacement* wanted);

// What it was set to; nullptr: as the process.
const MemoryPlacement* thread_memory();

// The nodes that the thread's memory must come from, our numbers; nullptr for all.
const os::NodeMask* thread_spill_limit();

}  // namespace numalloc::placement
