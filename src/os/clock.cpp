#include "os/clock.h"

#include <atomic>
#include <ctime>

#include "os/syscall.h"
#include "os/vdso.h"

namespace numalloc::os {

namespace {

using Clock = int (*)(clockid_t, timespec*);

#if defined(__x86_64__)
constexpr const char* in_vdso = "__vdso_clock_gettime";
#else
constexpr const char* in_vdso = "__kernel_clock_gettime";
#endif

// Used if there is no vDSO (valgrind, vdso=0): each call advances the clock by one millisecond.
int by_looks(clockid_t, timespec* t) {
    static constinit std::atomic<std::uint32_t> looks{0};
    const std::uint32_t now = looks.fetch_add(1, std::memory_order_relaxed);
    t->tv_sec = now / 1000;
    t->tv_nsec = static_cast<long>(now % 1000) * 1'000'000;
    return 0;
}

int look_first(clockid_t which, timespec* t);

// Threads that race here find the same function.
constinit std::atomic<Clock> clock_function{look_first};

int look_first(clockid_t which, timespec* t) {
    const auto found = reinterpret_cast<Clock>(vdso_function(in_vdso));
    clock_function.store(found != nullptr ? found : by_looks, std::memory_order_relaxed);
    return clock_function.load(std::memory_order_relaxed)(which, t);
}

std::uint64_t exactly(clockid_t which) {
    timespec t{};
    call(SYS_clock_gettime, which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace

std::uint32_t milliseconds() {
    timespec t{};
    // For this clock neither function fails or makes a system call. Exact clocks need one on some machines.
    clock_function.load(std::memory_order_relaxed)(CLOCK_MONOTONIC_COARSE, &t);
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(t.tv_sec) * 1000 +
                                      static_cast<std::uint64_t>(t.tv_nsec) / 1000000);
}

std::uint64_t nanoseconds() { return exactly(CLOCK_MONOTONIC); }
std::uint64_t time_of_day() { return exactly(CLOCK_REALTIME); }

}  // namespace numalloc::os
