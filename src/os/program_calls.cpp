#include "os/program_calls.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>

#include "os/syscall.h"

#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER 8UL
#endif

namespace numalloc::os {

namespace {

// The kernel reads the lower half of each word only.
bool installs_filter(const ProgramCall& c) {
    const int operation = static_cast<int>(c.argument[0]);
    if (c.number == SYS_prctl) return operation == PR_SET_SECCOMP;
    return operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER;
}

// A positive result is a listener's descriptor, or, if all threads were to get the filter, the ID of a thread that
// could not: then no thread has it.
bool was_installed(const ProgramCall& c, long result) {
    const bool may_be_descriptor = (static_cast<unsigned long>(c.argument[1]) & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
    return result == 0 || (result > 0 && c.number == SYS_seccomp && may_be_descriptor);
}

long pass_on(const ProgramCall& c) {
    switch (c.number) {
        case SYS_sched_getaffinity: return get_affinity_for_program(c);
        case SYS_sched_setaffinity: return set_affinity_for_program(c);
        case SYS_sched_setattr: return set_attributes_for_program(c);
        case SYS_execve: return execute_for_program(c);
        case SYS_execveat: return execute_at_for_program(c);
        case SYS_clone: return fork_for_program(c);
#if defined(SYS_fork)
        case SYS_fork: return fork_for_program(c);
#endif
        default: return installs_filter(c) ? around_filter(c) : make(c);
    }
}

}  // namespace

long make(const ProgramCall& c) {
    return call(c.number, c.argument[0], c.argument[1], c.argument[2], c.argument[3], c.argument[4]);
}

long install_filter(const ProgramCall& c) {
    filters.fetch_add(1, std::memory_order_relaxed);
    const long result = make(c);
    if (!was_installed(c, result)) filters.fetch_sub(1, std::memory_order_relaxed);
    return result;
}

}  // namespace numalloc::os

using namespace numalloc::os;

// The part of numalloc_program_syscall() that is not assembly.
extern "C" {
__attribute__((used)) long numalloc_syscall_failed(long result) {
    errno = static_cast<int>(-result);
    return -1;
}
// `number` is one of NUMALLOC_PASSED_ON in its lower half, or SYS_clone for a child with a copy of memory and stack;
// its upper half is arbitrary.
__attribute__((used)) long numalloc_syscall_passed_on(long number, long a, long b, long c, long d, long e) {
    const long result = pass_on({static_cast<int>(number), {a, b, c, d, e}});
    return failed(result) ? numalloc_syscall_failed(result) : result;
}

long numalloc_program_prctl(long option, long b, long c, long d, long e) {
    return numalloc_syscall_passed_on(SYS_prctl, option, b, c, d, e);
}
long numalloc_program_sched_setattr(int tid, void* attributes, unsigned flags) {
    return numalloc_syscall_passed_on(SYS_sched_setattr, tid, reinterpret_cast<long>(attributes), flags, 0, 0);
}
}

#define NUMALLOC_PASSED_ON(X) \
    X(SYS_prctl)              \
    X(SYS_seccomp)            \
    X(SYS_sched_getaffinity)  \
    X(SYS_sched_setaffinity)  \
    X(SYS_sched_setattr)      \
    X(SYS_execve)             \
    X(SYS_execveat)           \
    NUMALLOC_FORK(X)
#if defined(SYS_fork)
#define NUMALLOC_FORK(X) X(SYS_fork)
#else
#define NUMALLOC_FORK(X)
#endif

// Assembly without a stack frame: a child that it clones may return on another stack. CLONE_VM is 0x100,
// CLONE_VFORK 0x4000, CLONE_SETTLS 0x80000.
#define NUMALLOC_TEXT_(x) #x
#define NUMALLOC_TEXT(x) NUMALLOC_TEXT_(x)
#if defined(__x86_64__)
#define NUMALLOC_JUMP(number) "cmp $" NUMALLOC_TEXT(number) ", %edi\n je numalloc_syscall_passed_on\n"
#else
#define NUMALLOC_JUMP(number) "cmp w0, #" NUMALLOC_TEXT(number) "\n b.eq 1f\n"
#endif
__asm__(
    ".text\n"
    ".globl numalloc_program_syscall\n"
    ".hidden numalloc_program_syscall\n"
    ".type numalloc_program_syscall, %function\n"
    ".p2align 4\n"
    "numalloc_program_syscall:\n"
    ".cfi_startproc\n" NUMALLOC_PASSED_ON(NUMALLOC_JUMP)
#if defined(__x86_64__)
        "cmp $" NUMALLOC_TEXT(SYS_clone) ", %edi\n"
        "jne 1f\n"
        "test $0x84100, %esi\n"
        "jnz 1f\n"
        "test %rdx, %rdx\n"
        "jz numalloc_syscall_passed_on\n"
        "1: mov %rdi, %rax\n"
        "mov %rsi, %rdi\n"
        "mov %rdx, %rsi\n"
        "mov %rcx, %rdx\n"
        "mov %r8, %r10\n"
        "mov %r9, %r8\n"
        "mov 8(%rsp), %r9\n"
        "syscall\n"
        "cmp $-4095, %rax\n"
        "mov %rax, %rdi\n"
        "jae numalloc_syscall_failed\n"
        "ret\n"
#else
        "cmp w0, #" NUMALLOC_TEXT(SYS_clone) "\n"
        "b.ne 3f\n"
        "tbnz w1, #8, 3f\n"
        "tbnz w1, #14, 3f\n"
        "tbnz w1, #19, 3f\n"
        "cbz x2, 1f\n"
        "3: mov x8, x0\n"
        "mov x0, x1\n"
        "mov x1, x2\n"
        "mov x2, x3\n"
        "mov x3, x4\n"
        "mov x4, x5\n"
        "mov x5, x6\n"
        "svc 0\n"
        "cmn x0, #4095\n"
        "b.cs 2f\n"
        "ret\n"
        "1: b numalloc_syscall_passed_on\n"
        "2: b numalloc_syscall_failed\n"
#endif
        ".cfi_endproc\n"
        ".size numalloc_program_syscall, . - numalloc_program_syscall\n");
