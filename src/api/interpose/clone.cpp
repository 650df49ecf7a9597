// Interposed: _Fork(), and clone() without CLONE_VM, by syscall() too. libc calls no fork handler for such children.
// One that allocates would wait for ever for a thread of its parent that was inside the heap. Not with CLONE_VFORK: the
// gate would stay closed until the child ends. Not with CLONE_SETTLS: the child has no thread_local object of ours. Not
// if another library's clone() is behind ours: that one is called as it is.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "api/export.h"
#include "api/interpose/fork_handlers.h"
#include "api/interpose/jump.h"
#include "os/filter.h"
#include "os/program_calls.h"

extern "C" pid_t _Fork() noexcept;  // of glibc 2.34

#include "api/interpose/next.h"

namespace {

using namespace numalloc;

// A handler may leave _Fork() by siglongjmp(), because _Fork() is async-signal-safe. Then the gate would stay closed.
class NoSignals {
public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &kept_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &kept_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

    const sigset_t& kept() const { return kept_; }

private:
    sigset_t kept_;
};

template <class MakeChild>
auto around_child(MakeChild make_child) {
    if (os::filtered()) return make_child();
    const NoSignals no_signals;
    if (!api::fork_prepare_briefly()) return make_child();
    const auto child = make_child();
    if (child == 0) api::fork_child();
    else api::fork_parent();
    return child;
}

struct ChildsWork {
    int (*start)(void*);
    void* argument;
    sigset_t signals;  // the mask that the child begins with
};

// Called on the child's own stack; `p` lies on its copy of the parent's.
int begin_child(void* p) {
    const ChildsWork work = *static_cast<ChildsWork*>(p);
    api::fork_child();
    pthread_sigmask(SIG_SETMASK, &work.signals, nullptr);
    return work.start(work.argument);
}

}  // namespace

long os::fork_for_program(const ProgramCall& call) {
    return around_child([&] { return make(call); });
}

extern "C" NUMALLOC_EXPORT pid_t _Fork() noexcept {
    const auto next = NUMALLOC_NEXT(_Fork);
    if (next != nullptr) return around_child(next);
    errno = ENOSYS;
    return -1;
}

extern "C" {

__attribute__((used)) int numalloc_clone(int (*start)(void*), void* stack, int flags, void* argument, ...) noexcept {
    void* rest[3];
    va_list arguments;
    va_start(arguments, argument);
    for (void*& one : rest) one = va_arg(arguments, void*);
    va_end(arguments);
    const auto next = NUMALLOC_NEXT(clone);
    const auto pass_on = [&](int (*first)(void*), void* its) {
        return next(first, stack, flags, its, rest[0], rest[1], rest[2]);
    };
    const bool is_fork = (flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS)) == 0 && start != nullptr && stack != nullptr;
    if (!is_fork || os::filtered()) return pass_on(start, argument);
    const NoSignals no_signals;
    if (!api::fork_prepare_briefly()) return pass_on(start, argument);
    ChildsWork work{start, argument, no_signals.kept()};
    const int child = pass_on(begin_child, &work);
    api::fork_parent();
    return child;
}

// The name is not reserved, so another library's clone() may be anything: a function that copies a list, say. It gets
// the caller's arguments, whatever they are.
__attribute__((used)) void* numalloc_clone_to_use() {
    (void)NUMALLOC_NEXT(clone);  // NUMALLOC_OTHERS() does not look it up
    const auto others = NUMALLOC_OTHERS(clone);
    return reinterpret_cast<void*>(others != nullptr ? others : &numalloc_clone);
}

}  // extern "C"

#if defined(__x86_64__)
NUMALLOC_FUNCTION(clone,
                  "sub $200, %rsp\n.cfi_adjust_cfa_offset 200\n"
                  "movups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\nmovups %xmm2, 32(%rsp)\nmovups %xmm3, 48(%rsp)\n"
                  "movups %xmm4, 64(%rsp)\nmovups %xmm5, 80(%rsp)\nmovups %xmm6, 96(%rsp)\nmovups %xmm7, 112(%rsp)\n"
                  "mov %rdi, 128(%rsp)\nmov %rsi, 136(%rsp)\nmov %rdx, 144(%rsp)\nmov %rcx, 152(%rsp)\n"
                  "mov %r8, 160(%rsp)\nmov %r9, 168(%rsp)\nmov %rax, 176(%rsp)\n"
                  "call numalloc_clone_to_use\n"
                  "mov %rax, %r11\n"
                  "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\nmovups 32(%rsp), %xmm2\nmovups 48(%rsp), %xmm3\n"
                  "movups 64(%rsp), %xmm4\nmovups 80(%rsp), %xmm5\nmovups 96(%rsp), %xmm6\nmovups 112(%rsp), %xmm7\n"
                  "mov 128(%rsp), %rdi\nmov 136(%rsp), %rsi\nmov 144(%rsp), %rdx\nmov 152(%rsp), %rcx\n"
                  "mov 160(%rsp), %r8\nmov 168(%rsp), %r9\nmov 176(%rsp), %rax\n"
                  "add $200, %rsp\n.cfi_adjust_cfa_offset -200\n"
                  "jmp *%r11");
#elif defined(__aarch64__)
NUMALLOC_FUNCTION(clone,
                  "stp x29, x30, [sp, #-224]!\n.cfi_def_cfa_offset 224\n.cfi_offset 29, -224\n.cfi_offset 30, -216\n"
                  "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
                  "str x8, [sp, #80]\n"
                  "stp q0, q1, [sp, #96]\nstp q2, q3, [sp, #128]\nstp q4, q5, [sp, #160]\nstp q6, q7, [sp, #192]\n"
                  "bl numalloc_clone_to_use\n"
                  "mov x16, x0\n"
                  "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"
                  "ldr x8, [sp, #80]\n"
                  "ldp q0, q1, [sp, #96]\nldp q2, q3, [sp, #128]\nldp q4, q5, [sp, #160]\nldp q6, q7, [sp, #192]\n"
                  "ldp x29, x30, [sp], #224\n.cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\n"
                  "br x16");
#else
#error "numalloc knows x86-64 and aarch64"
#endif
