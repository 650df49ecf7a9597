// What a node's heap holds, gathered lock by lock: exact for a process at rest, otherwise a
// picture of slightly different moments.
#pragma once

#include "heap/process/heap.h"

namespace numalloc {

struct NodeStatistics {
#define NUMALLOC_STATISTIC(name, unit, what) std::uint64_t name = 0;
#include "numalloc/statistics.def"
#undef NUMALLOC_STATISTIC
};

// All zero for a node that is not in use. Thread-safe.
NodeStatistics statistics_of(NodeId n);

// The sum over the nodes.
NodeStatistics statistics_of_process();

}  // namespace numalloc
