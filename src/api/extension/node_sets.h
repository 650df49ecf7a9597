// Converts sets of nodes between the interface's type and numalloc's.
#pragma once

#include <cstring>

#include "numalloc/numalloc.h"
#include "os/topology.h"

namespace numalloc::api {

static_assert(sizeof(numalloc_node_set) == sizeof(os::NodeMask) && NUMALLOC_MOST_NODES == os::max_os_nodes);

inline os::NodeMask mask_of(const numalloc_node_set& set) {
    os::NodeMask mask;
    memcpy(mask.data(), set.word, sizeof set);
    return mask;
}
inline numalloc_node_set set_of(const os::NodeMask& mask) {
    numalloc_node_set set;
    memcpy(set.word, mask.data(), sizeof set);
    return set;
}

// The kernel's numbers of the nodes that this process may use. Starts the library if needed.
os::NodeMask usable_nodes();

// A set whose nodes are all usable.
struct ChosenNodes {
    os::NodeMask of_kernel;  // the kernel's numbers
    os::NodeMask ours;

    // Returns false with errno EINVAL (an empty set, or a node that does not exist) or ENXIO (a node that is not
    // usable). Starts the library if needed.
    bool choose(const numalloc_node_set& set);
    bool all_usable() const { return ours.count() == os::topology().nodes(); }
    // The node of the set that is nearest to the calling thread.
    NodeId nearest() const;
    // The k-th node of the set by number, from 0.
    NodeId at(unsigned k) const;
};

}  // namespace numalloc::api
