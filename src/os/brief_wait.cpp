#include "os/brief_wait.h"

#include <linux/futex.h>

#include <ctime>

#include "base/bits.h"
#include "os/syscall.h"

namespace numalloc::os {

namespace {

constexpr int spins_before_sleep = 64;
constexpr long first_sleep = 50'000;  // nanoseconds
constexpr long longest_sleep = 1'000'000;

template <class Done>
bool wait_until(const std::atomic<std::uint32_t>& word, std::uint32_t& sleeps, Done done) {
    timespec sleep{0, first_sleep};
    for (int i = 0;; ++i) {
        const std::uint32_t now = word.load(std::memory_order_seq_cst);
        if (done(now)) return true;
        if (i < spins_before_sleep) continue;
        if (sleeps == 0) return false;
        if (sleeps != without_end) --sleeps;
        call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, now, &sleep, 0, 0);
        sleep.tv_nsec = min_of(2 * sleep.tv_nsec, longest_sleep);
    }
}

}  // namespace

bool wait_for_fall(const std::atomic<std::uint32_t>& word, std::uint32_t most, std::uint32_t& sleeps) {
    return wait_until(word, sleeps, [most](std::uint32_t now) { return now <= most; });
}

bool wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint32_t& sleeps) {
    return wait_until(word, sleeps, [value](std::uint32_t now) { return now != value; });
}

}  // namespace numalloc::os
