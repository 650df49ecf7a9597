#include "os/lock.h"

#include <linux/futex.h>

#include <ctime>

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
// Locks of each rank that this thread holds.
NUMALLOC_THREAD_LOCAL std::uint16_t held[static_cast<int>(LockRank::count)] = {};
#endif

}  // namespace

#if defined(NUMALLOC_CHECKS)
// Only a try_lock() may take the second lock of a rank.
void LockWord::check_order(LockRank rank, bool waits) {
    for (int r = static_cast<int>(rank) + (waits ? 0 : 1); r < static_cast<int>(LockRank::count); ++r)
        NUMALLOC_ASSERT(held[r] == 0);
    ++held[static_cast<int>(rank)];
}
void LockWord::after_unlock(LockRank rank) {
    NUMALLOC_ASSERT(held[static_cast<int>(rank)] > 0);
    --held[static_cast<int>(rank)];
}
void LockWord::check_held(LockRank rank) { NUMALLOC_ASSERT(held[static_cast<int>(rank)] > 0); }
#endif

void LockWord::acquire_contended() {
    for (int i = 0; i < spins_before_sleep; ++i) {
        relax();
        if (try_acquire_left_behind()) return;
    }
    for (;;) {
        fork_gate.notice_child();
        const std::uint32_t held_and_awaited = fork_gate.held() | awaited;
        if (is_free(word_.exchange(held_and_awaited, std::memory_order_acquire))) return;
        count(Count::futex_sleeps);
        call(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, held_and_awaited, 0, 0, 0);
    }
}

bool LockWord::acquire_within(std::uint32_t sleeps) {
    fork_gate.enter();
    if (try_acquire()) return true;
    for (;; --sleeps) {
        const std::uint32_t held_and_awaited = fork_gate.held() | awaited;
        if (is_free(word_.exchange(held_and_awaited, std::memory_order_acquire))) return true;
        if (sleeps == 0) break;
        const timespec millisecond{0, 1'000'000};
        call(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, held_and_awaited, &millisecond, 0, 0);
    }
    fork_gate.leave();
    return false;
}

// A fork is in progress: releases the lock, the only one that the caller holds, until the fork is over.
void LockWord::acquire_after_fork() {
    do {
        give_back();
        fork_gate.leave();
        fork_gate.wait();
        fork_gate.enter();
        if (!try_acquire()) acquire_contended();
    } while (fork_gate.stops());
}

void LockWord::wake() { call(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); }

}  // namespace numalloc::os
