#include "os/refusals.h"

namespace numalloc::os {

#define NUMALLOC_REFUSAL(name) constinit Refusals refused_##name;
#include "os/refusals.def"
#undef NUMALLOC_REFUSAL

}  // namespace numalloc::os
