#include "os/filter.h"

namespace numalloc::os {

constinit std::atomic<std::uint32_t> filters{0};

}  // namespace numalloc::os
