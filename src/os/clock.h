// Time for housekeeping: cheap (the vDSO), coarse (a scheduler tick, 1 to 10 ms). It is asked of the kernel and not of
// clock_gettime, which others replace (libfaketime): theirs may allocate, and would do so under our locks.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Milliseconds since boot; wraps after 49 days, so compare differences only.
std::uint32_t milliseconds();

// Nanoseconds since boot, and since 1970. A system call each: not in malloc or free.
std::uint64_t nanoseconds();
std::uint64_t time_of_day();

}  // namespace numalloc::os
