#include "os/ending_signals.h"

#include <cerrno>
#include <csignal>

#include "os/affinity.h"
#include "os/syscall.h"

namespace numalloc::os {

namespace {

using Before = bool (*)(int signal);
// Set before the first handler is installed.
constinit Before before_end = nullptr;

void handle(int signal) {
    const int kept = errno;
    if (before_end(signal)) end_by(signal);
    errno = kept;
}

}  // namespace

void before_ending_signals(bool (*before)(int signal)) {
    before_end = before;
    constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (const int signal : signals) {
        struct sigaction now{};
        if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
        struct sigaction ours{};
        ours.sa_handler = handle;
        ours.sa_flags = SA_RESTART;
        sigemptyset(&ours.sa_mask);
        sigaction(signal, &ours, nullptr);
    }
}

// In the signal's own handler the signal is blocked, so it is delivered when the handler returns.
void end_by(int signal) {
    struct sigaction system{};
    system.sa_handler = SIG_DFL;
    sigaction(signal, &system, nullptr);
    call(SYS_tgkill, call(SYS_getpid), call(SYS_gettid), signal);
}

}  // namespace numalloc::os
