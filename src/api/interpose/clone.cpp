// Interposed: _Fork(), and clone() without CLONE_VM, by syscall() too. libc calls no fork handler for such children.
// One that allocates would wait for ever for a thread of its parent that was inside the heap. Not with CLONE_VFORK: the
// gate would stay closed until the child ends. Not with CLONE_SETTLS: the child has no thread_local object of ours.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "api/export.h"
#include "api/interpose/fork_handlers.h"
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

extern "C" NUMALLOC_EXPORT int clone(int (*start)(void*), void* stack, int flags, void* argument, ...) noexcept {
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
