#include "os/signal.h"

#include <cerrno>
#include <csignal>

namespace numalloc::os {

void handle_signal(int number, void (*handler)(int)) {
    const int kept = errno;
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
        struct sigaction ours {};
        ours.sa_handler = handler;
        ours.sa_flags = SA_RESTART | SA_ONSTACK;
        sigaction(number, &ours, nullptr);
    }
    errno = kept;
}

}  // namespace numalloc::os
