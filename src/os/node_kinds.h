// Nodes by what the kernel says of them: CPUs, bandwidth, tiers.
#pragma once

#include "os/topology.h"

namespace numalloc::os {

// These add the kernel's numbers of nodes to `nodes`; false where the kernel says nothing of it.
bool nodes_with_cpus(const SysReader& reader, NodeMask& nodes);
// Of `among`, those with the largest read bandwidth from their best initiators.
bool nodes_of_most_bandwidth(const SysReader& reader, const NodeMask& among, NodeMask& nodes);
// All nodes in memory tiers behind the first.
bool nodes_of_slower_tiers(const SysReader& reader, NodeMask& nodes);

// The machine we run on.
SysReader real_reader();

}  // namespace numalloc::os
