#include "os/fault.h"

#include <ucontext.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "os/ending_signals.h"
#include "os/filter.h"

namespace numalloc::os {

namespace {

using Explain = bool (*)(const Fault& fault);
// At most two: guarded objects, and the quarantine of the hardened library.
constinit std::atomic<Explain> explainers[2] = {};

// What the program had installed before.
struct sigaction before_segv{};
struct sigaction before_bus{};
// The thread has explained a fault, or does so, and will end.
NUMALLOC_THREAD_LOCAL bool explains = false;

bool is_function(const struct sigaction& action) {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

#if defined(__x86_64__)
Address instruction_of(const ucontext_t& context) { return static_cast<Address>(context.uc_mcontext.gregs[REG_RIP]); }
// Bit 1 of the processor's error code: the access was a write.
Access access_of(const ucontext_t& context) {
    return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0 ? Access::write : Access::read;
}
#elif defined(__aarch64__)
Address instruction_of(const ucontext_t& context) { return static_cast<Address>(context.uc_mcontext.pc); }
// Bit 6 of the exception syndrome: the access was a write. The kernel stores the syndrome as a record in the context.
Access access_of(const ucontext_t& context) {
    constexpr std::uint32_t syndrome = 0x45535201;
    struct Head {
        std::uint32_t magic, size;
    };
    const auto* p = reinterpret_cast<const char*>(context.uc_mcontext.__reserved);
    const char* const end = p + sizeof context.uc_mcontext.__reserved;
    while (end - p >= 16) {
        Head head;
        std::memcpy(&head, p, sizeof head);
        if (head.size == 0) break;
        if (head.magic == syndrome) {
            std::uint64_t value = 0;
            std::memcpy(&value, p + sizeof head, sizeof value);
            return (value & 64) != 0 ? Access::write : Access::read;
        }
        p += head.size;
    }
    return Access::unknown;
}
#else
Address instruction_of(const ucontext_t&) { return 0; }
Access access_of(const ucontext_t&) { return Access::unknown; }
#endif

// After a fault the instruction runs again when the handler returns. The signal is blocked then, so the kernel ends the
// process. A signal that was sent does not repeat, so it is sent again.
void leave_to_system(int signal, const siginfo_t* info, ucontext_t& context) {
    if (info->si_code <= 0) return end_by(signal);
    sigaddset(&context.uc_sigmask, signal);
}

bool is_explained(const Fault& fault) {
    if (explains) return true;
    for (const auto& explainer : explainers)
        if (const Explain explain = explainer.load(std::memory_order_acquire); explain != nullptr && explain(fault))
            return true;
    return false;
}

void leave_to_program(const struct sigaction& before, int signal, siginfo_t* info, ucontext_t& context) {
    if (!is_function(before)) {
        // A fault cannot be ignored.
        if (before.sa_handler != SIG_IGN || info->si_code > 0) leave_to_system(signal, info, context);
    } else if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(signal, info, &context);
    } else {
        before.sa_handler(signal);
    }
}

void handle(int signal, siginfo_t* info, void* context) {
    const int kept = errno;
    auto& machine = *static_cast<ucontext_t*>(context);
    const Fault fault{reinterpret_cast<Address>(info->si_addr), access_of(machine), instruction_of(machine)};
    if (info->si_code > 0 && is_explained(fault)) leave_to_system(signal, info, machine);
    else leave_to_program(signal == SIGBUS ? before_bus : before_segv, signal, info, machine);
    errno = kept;
}

// Ours runs as the program's would: on the same stack, with the same signals blocked, and once if it asked for that.
void install(int signal, struct sigaction& before) {
    sigaction(signal, nullptr, &before);
    struct sigaction ours{};
    if (is_function(before)) {
        ours = before;
    } else {
        sigemptyset(&ours.sa_mask);
        ours.sa_flags = SA_ONSTACK | SA_RESTART;
    }
    ours.sa_sigaction = handle;
    ours.sa_flags |= SA_SIGINFO;
    sigaction(signal, &ours, nullptr);
}

}  // namespace

void begin_explanation() { explains = true; }

bool on_fault(bool (*explain)(const Fault& fault)) {
    // The second function shares the first one's handler. There is no slot for a third.
    if (explainers[0].load(std::memory_order_acquire) == nullptr && filtered()) return false;
    Explain none = nullptr;
    if (!explainers[0].compare_exchange_strong(none, explain, std::memory_order_acq_rel)) {
        explainers[1].store(explain, std::memory_order_release);
        return true;
    }
    const int kept = errno;
    install(SIGSEGV, before_segv);
    install(SIGBUS, before_bus);
    errno = kept;
    return true;
}

}  // namespace numalloc::os
