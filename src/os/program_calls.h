// Calls by which a program may filter its own system calls, passed on: prctl and syscall. For the shared libraries,
// which interpose them (api/interpose/filters.cpp).
#pragma once

#include "os/filter.h"

namespace numalloc::os {

struct ProgramCall {
    long number;
    long argument[5];
};

// Makes a call that installs a filter. Its result, or -errno. Async-signal-safe; errno is kept.
long install_filter(const ProgramCall& filter);

// Of the floor that interposes: calls install_filter(), and does what is due before and after.
long around_filter(const ProgramCall& filter);

}  // namespace numalloc::os

extern "C" {
// As libc's, errno included.
long numalloc_program_prctl(long option, long b, long c, long d, long e);
long numalloc_program_syscall(long number, ...);
}
