// Kinds of nodes, as the kernel reports them: by CPUs, bandwidth and memory tier.
#pragma once

#include "os/topology.h"

namespace numalloc::os {

// Each adds the kernel's node numbers to `nodes`; false if the kernel does not report them.
bool nodes_with_cpus(const SysReader& reader, NodeMask& nodes);
// The nodes of `among` with the largest read bandwidth from their best initiators.
bool nodes_of_most_bandwidth(const SysReader& reader, const NodeMask& among, NodeMask& nodes);
// All nodes in memory tiers after the first.
bool nodes_of_slower_tiers(const SysReader& reader, NodeMask& nodes);

}  // namespace numalloc::os
