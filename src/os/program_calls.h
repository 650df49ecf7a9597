// Passes on the system calls that the program makes by prctl() and syscall(). For the shared libraries, which interpose
// both (api/interpose/filters.cpp, threads.cpp, exec.cpp). Calls that the interposed functions of libc change are
// changed here too.
#pragma once

#include "os/filter.h"

namespace numalloc::os {

struct ProgramCall {
    long number;
    long argument[5];
};

// All of them return the call's result, or -errno, and keep errno.

// Makes a call as it is. Async-signal-safe.
long make(const ProgramCall& call);
// Makes a call that installs a filter. Async-signal-safe.
long install_filter(const ProgramCall& filter);

// Defined in api/interpose: calls install_filter() and does the work that must precede and follow it.
long around_filter(const ProgramCall& filter);
// Defined in api/interpose: what sched_getaffinity(), sched_setaffinity(), execve() and execveat() do, and
// sched_setattr(), which SCHED_DEADLINE needs.
long get_affinity_for_program(const ProgramCall& call);
long set_affinity_for_program(const ProgramCall& call);
long set_attributes_for_program(const ProgramCall& call);
long execute_for_program(const ProgramCall& call);
long execute_at_for_program(const ProgramCall& call);
// Defined in api/interpose: what fork() does for the heap, around a clone() whose child has a copy of memory and stack.
long fork_for_program(const ProgramCall& call);

}  // namespace numalloc::os

extern "C" {
// Behave like libc's, errno included.
long numalloc_program_prctl(long option, long b, long c, long d, long e);
long numalloc_program_sched_setattr(int tid, void* attributes, unsigned flags);
long numalloc_program_syscall(long number, ...);
}
