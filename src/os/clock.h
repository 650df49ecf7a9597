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

// The processor's counter: to compare durations, never a system call. Not where ticks_are_forbidden().
std::uint64_t ticks();
// Whether to read it is a SIGSEGV (PR_SET_TSC, and after a filter it may be). Asked of the kernel once, at the start; later told.
bool ticks_are_forbidden();
void forbid_ticks(bool forbidden);
void ask_whether_ticks_are_forbidden();
// So many a millisecond, to within a factor of 3.
std::uint64_t ticks_a_millisecond();

}  // namespace numalloc::os
