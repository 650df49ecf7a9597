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

long make(const ProgramCall& c) {
    return call(c.number, c.argument[0], c.argument[1], c.argument[2], c.argument[3], c.argument[4]);
}

}  // namespace

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
// `number` is SYS_prctl or SYS_seccomp in its lower half; its upper half is arbitrary.
__attribute__((used)) long numalloc_syscall_control(long number, long a, long b, long c, long d, long e) {
    const ProgramCall program_call{static_cast<int>(number), {a, b, c, d, e}};
    const long result = installs_filter(program_call) ? around_filter(program_call) : make(program_call);
    return failed(result) ? numalloc_syscall_failed(result) : result;
}

long numalloc_program_prctl(long option, long b, long c, long d, long e) {
    return numalloc_syscall_control(SYS_prctl, option, b, c, d, e);
}
}

// Assembly without a stack frame: a child that it clones may return on another stack.
#define NUMALLOC_TEXT_(x) #x
#define NUMALLOC_TEXT(x) NUMALLOC_TEXT_(x)
__asm__(
    ".text\n"
    ".globl numalloc_program_syscall\n"
    ".hidden numalloc_program_syscall\n"
    ".type numalloc_program_syscall, %function\n"
    ".p2align 4\n"
    "numalloc_program_syscall:\n"
    ".cfi_startproc\n"
#if defined(__x86_64__)
    "cmp $" NUMALLOC_TEXT(SYS_prctl) ", %edi\n"
    "je numalloc_syscall_control\n"
    "cmp $" NUMALLOC_TEXT(SYS_seccomp) ", %edi\n"
    "je numalloc_syscall_control\n"
    "mov %rdi, %rax\n"
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
    "cmp w0, #" NUMALLOC_TEXT(SYS_prctl) "\n"
    "b.eq 1f\n"
    "cmp w0, #" NUMALLOC_TEXT(SYS_seccomp) "\n"
    "b.eq 1f\n"
    "mov x8, x0\n"
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
    "1: b numalloc_syscall_control\n"
    "2: b numalloc_syscall_failed\n"
#endif
    ".cfi_endproc\n"
    ".size numalloc_program_syscall, . - numalloc_program_syscall\n");
