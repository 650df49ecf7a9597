#include "os/signal.h"

#include <cerrno>
#include <csignal>

#include "os/optional_call.h"

namespace numalloc::os {

namespace {

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }
constexpr std::uint64_t of_writes = bit(SIGPIPE) | bit(SIGXFSZ);
constexpr std::uint64_t of_faults = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS);

std::uint64_t pending() {
    std::uint64_t set = 0;
    call(SYS_rt_sigpending, &set, sizeof set);
    return set & of_writes;
}

}  // namespace

constexpr std::uint64_t not_of_faults = ~of_faults;

NoSignals::NoSignals(std::uint64_t set)
    : blocked_(!failed(optional_call(SYS_rt_sigprocmask, SIG_BLOCK, &set, &mask_before_, sizeof mask_before_))) {}

NoSignals::~NoSignals() {
    if (blocked_) call(SYS_rt_sigprocmask, SIG_SETMASK, &mask_before_, 0, sizeof mask_before_);
}

WritesAreHarmless::WritesAreHarmless() : blocked_(of_writes) {
    if (blocked_.are_blocked()) pending_before_ = pending();
}

// Consumes the signals that our own writes raised. Signals that were pending before stay.
WritesAreHarmless::~WritesAreHarmless() {
    if (!blocked_.are_blocked()) return;
    const timespec at_once{};
    for (std::uint64_t sent; (sent = pending() & ~pending_before_) != 0;)
        if (failed(call(SYS_rt_sigtimedwait, &sent, 0, &at_once, sizeof sent))) break;
}

void handle_signal(int number, void (*handler)(int)) {
    const int kept = errno;
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
        struct sigaction ours{};
        ours.sa_handler = handler;
        ours.sa_flags = SA_RESTART | SA_ONSTACK;
        sigaction(number, &ours, nullptr);
    }
    errno = kept;
}

}  // namespace numalloc::os
