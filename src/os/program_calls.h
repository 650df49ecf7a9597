// Passes on the program's prctl and syscall, by which it may filter its own system calls. For the shared libraries,
// which interpose both (api/interpose/filters.cpp).
#pragma once

#include "os/filter.h"

namespace numalloc::os {

struct ProgramCall {
    long number;
    long argument[5];
};

// Makes a call that installs a filter. Returns its result, or -errno. Async-signal-safe; keeps errno.
long install_filter(const ProgramCall& filter);

// Defined in api/interpose: calls install_filter() and does the work that must precede and follow it.
long around_filter(const ProgramCall& filter);

}  // namespace numalloc::os

extern "C" {
// Behave like libc's, errno included.
long numalloc_program_prctl(long option, long b, long c, long d, long e);
long numalloc_program_syscall(long number, ...);
}
