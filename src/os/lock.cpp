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
// How many locks of each rank this thread holds. Several of one rank are taken only by the fork handlers,
// in one fixed order, and by whoever only tries for the second.
thread_local std::uint16_t held[static_cast<int>(LockRank::count)] __attribute__((tls_model("initial-exec")));
#endif

}  // namespace

#if defined(NUMALLOC_CHECKS)
void LockWord::before_lock(LockRank rank) {
    for (int r = static_cast<int>(rank) + 1; r < static_cast<int>(LockRank::count); ++r) NUMALLOC_ASSERT(held[r] == 0);
    ++held[static_cast<int>(rank)];
}
void LockWord::after_unlock(LockRank rank) {
    NUMALLOC_ASSERT(held[static_cast<int>(rank)] > 0);
    --held[static_cast<int>(rank)];
}
#endif

void LockWord::acquire_contended() {
    for (int i = 0; i < spins_before_sleep; ++i) {
        relax();
        if (word_.load(std::memory_order_relaxed) == 0 && try_acquire()) return;
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) call(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void LockWord::wake() { call(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); }

}  // namespace numalloc::os
