#include "os/lock.h"

#include <linux/futex.h>

#include "base/check.h"
#include "os/syscall.h"

namespace numalloc::os {

namespace {

constexpr int spins_before_sleep = 64;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

#if defined(NUMALLOC_CHECKS)
// How many locks of each rank this thread holds. Several of one rank are taken only by the
// fork handlers, in one fixed order.
thread_local std::uint16_t held[static_cast<int>(LockRank::count)] __attribute__((tls_model("initial-exec")));
#endif

}  // namespace

#if defined(NUMALLOC_CHECKS)
void Lock::before_lock() {
    for (int r = static_cast<int>(rank_) + 1; r < static_cast<int>(LockRank::count); ++r) NUMALLOC_ASSERT(held[r] == 0);
    ++held[static_cast<int>(rank_)];
}
void Lock::after_unlock() {
    NUMALLOC_ASSERT(held[static_cast<int>(rank_)] > 0);
    --held[static_cast<int>(rank_)];
}
#endif

void Lock::lock_contended() {
    for (int i = 0; i < spins_before_sleep; ++i) {
        relax();
        std::uint32_t expected = 0;
        if (word_.load(std::memory_order_relaxed) == 0 &&
            word_.compare_exchange_weak(expected, 1, std::memory_order_acquire))
            return;
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) call(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void Lock::wake() { call(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); }

}  // namespace numalloc::os
