// From the kernel's numbers, which the outside uses, to ours.
#pragma once

#include "base/ids.h"

namespace numalloc::api {

// The usable node with this kernel number. no_node sets errno: EINVAL for a node that the machine does
// not have, ENXIO for one that this process may not use or that has no memory. Wakes the library.
NodeId usable_node(int os_node);

}  // namespace numalloc::api
