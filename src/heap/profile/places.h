// The nodes on which the pages of blocks are.
#pragma once

#include "heap/profile/store.h"

namespace numalloc::profile {

// The node that has most of the block's existing pages, of a sample spread evenly over the block; unknown_node if none
// exists. If the kernel does not answer (in a container), the node that the heap meant them for. With one node, makes
// no system call.
OsNode pages_of(const Block& block);

}  // namespace numalloc::profile
