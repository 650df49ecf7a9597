// Time for housekeeping: cheap (the vDSO) and coarse (a scheduler tick, 1 to 10 ms). Does not call clock_gettime: a
// library that replaces it (libfaketime) may allocate, and would do so under our locks.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Milliseconds since boot; wraps after 49 days, so compare differences only.
std::uint32_t milliseconds();

// Nanoseconds since boot, and since 1970. Each call is a system call: not for malloc or free.
std::uint64_t nanoseconds();
std::uint64_t time_of_day();

}  // namespace numalloc::os
