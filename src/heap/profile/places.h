// On which nodes the pages of blocks are.
#pragma once

#include "heap/profile/store.h"

namespace numalloc::profile {

// The node that has most of the block's pages, as far as they exist: the kernel is asked for some of them, spread
// evenly. Where it does not tell (a container), the node that the heap meant them to be on. On a machine of one node
// nobody is asked.
OsNode pages_of(const Block& block);

}  // namespace numalloc::profile
