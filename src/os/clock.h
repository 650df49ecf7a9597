// Time for housekeeping: cheap (the vDSO), coarse (a scheduler tick, 1 to 10 ms).
#pragma once

#include <cstdint>

namespace numalloc::os {

// Milliseconds since boot; wraps after 49 days, so compare differences only.
std::uint32_t milliseconds();

}  // namespace numalloc::os
