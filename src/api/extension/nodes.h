// Converts the kernel's node numbers, which the interface uses, to numalloc's.
#pragma once

#include "base/ids.h"

namespace numalloc::api {

// The usable node with this kernel number. Returns no_node with errno EINVAL if the machine has no such node, or ENXIO
// if this process may not use it or it has no memory. Starts the library if needed.
NodeId usable_node(int os_node);
// The same for a node that the program names for memory.
NodeId named_node(int os_node);

}  // namespace numalloc::api
