// Interposed: prctl and syscall, by which a program installs a filter of its system calls. The library starts
// before the first filter, and makes no optional system call after it: os/filter.h.
#include <sys/prctl.h>

#include <cstdarg>

#include "api/export.h"
#include "api/interpose/jump.h"
#include "api/interpose/library.h"
#include "api/interpose/next.h"
#include "os/fork_gate.h"
#include "os/program_calls.h"
#include "placement/placement.h"

namespace numalloc::os {

long around_filter(const ProgramCall& filter) {
    // A signal handler interrupted the heap.
    if (!ForkGate::waits()) return install_filter(filter);
    api::complete_start();
    // The caller is a child between vfork and exec, or of a raw clone.
    if (!fork_gate.is_process()) return install_filter(filter);
    placement::note_main_thread();
    const auto install = [](const void* call) { return install_filter(*static_cast<const ProgramCall*>(call)); };
    return placement::call_with_users_masks(install, &filter);
}

}  // namespace numalloc::os

extern "C" NUMALLOC_EXPORT int prctl(int option, ...) noexcept {
    long rest[4];
    va_list arguments;
    va_start(arguments, option);
    for (long& argument : rest) argument = va_arg(arguments, long);
    va_end(arguments);
    if (const auto others = NUMALLOC_OTHERS(prctl); others != nullptr && option != PR_SET_SECCOMP)
        return others(option, rest[0], rest[1], rest[2], rest[3]);
    return static_cast<int>(numalloc_program_prctl(option, rest[0], rest[1], rest[2], rest[3]));
}

// long syscall(long number, ...)
__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, %function\n"
    "syscall:\n" NUMALLOC_LANDING
#if defined(__x86_64__)
    "jmp numalloc_program_syscall\n"
#else
    "b numalloc_program_syscall\n"
#endif
    ".size syscall, . - syscall\n");
