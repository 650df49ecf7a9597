// The one-word mutex: exclusion under contention, sleep and wake, and the order of ranks.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/check.h"
#include "os/lock.h"

namespace numalloc::os {
namespace {

TEST(Lock, OneThreadAtATime) {
    Lock<LockRank::pages> lock;
    // Plain on purpose: ThreadSanitizer sees what the count might not.
    std::uint64_t count = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 50'000; ++i) {
                Guard guard(lock);
                ++count;
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(count, 8u * 50'000);
}

// Longer than any spinning: the waiters sleep in the kernel and all wake.
TEST(Lock, SleepersWake) {
    Lock<LockRank::pages> lock;
    std::atomic<int> passed{0};
    std::vector<std::thread> threads;
    lock.lock();
    for (int t = 0; t < 6; ++t)
        threads.emplace_back([&] {
            Guard guard(lock);
            ++passed;
        });
    // So that most of them sleep; the verdict is the same if they do not.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(passed, 0);
    lock.unlock();
    for (auto& t : threads) t.join();
    EXPECT_EQ(passed, 6);
}

TEST(Lock, TryLockDoesNotWait) {
    Lock<LockRank::pages> lock;
    ASSERT_TRUE(lock.try_lock());
    std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
    lock.unlock();
    std::thread([&] {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    }).join();
}

TEST(Lock, AscendingRanksAndSeveralOfOne) {
    Lock<LockRank::size_class> outer;
    Lock<LockRank::pages> inner, other;
    Guard a(outer);
    Guard b(inner);
    ASSERT_TRUE(other.try_lock());
    other.unlock();
}

#if defined(NUMALLOC_CHECKS)
TEST(LockDeathTest, ADescendingRankIsSeen) {
    Lock<LockRank::size_class> outer;
    Lock<LockRank::pages> inner;
    EXPECT_DEATH(
        {
            Guard b(inner);
            Guard a(outer);
        },
        "assertion failed: held");
}

TEST(LockDeathTest, WaitingForASecondLockOfOneRankIsSeen) {
    Lock<LockRank::pages> one, other;
    EXPECT_DEATH(
        {
            Guard a(one);
            Guard b(other);
        },
        "assertion failed: held");
}

TEST(LockDeathTest, UnlockingWhatIsNotHeldIsSeen) {
    Lock<LockRank::metadata> lock;
    EXPECT_DEATH(lock.unlock(), "assertion failed: held");
}

TEST(LockDeathTest, SayingThatItIsHeldWhenItIsNotIsSeen) {
    Lock<LockRank::metadata> lock;
    {
        Guard guard(lock);
        lock.assert_held();
    }
    EXPECT_DEATH(lock.assert_held(), "assertion failed: held");
}
#endif

}  // namespace
}  // namespace numalloc::os
