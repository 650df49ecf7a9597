// The gate that a fork closes: whom it stops, whom it waits for, whom it lets pass.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "os/brief_wait.h"
#include "os/lock.h"

namespace numalloc::os {
namespace {

using namespace std::chrono_literals;

// Time for another thread to do what it must not. On a slow machine it may come too late and an error is missed, but no
// error is seen where there is none.
constexpr auto a_while = 50ms;

TEST(ForkGate, StopsWhoComesForALock) {
    Lock<LockRank::size_class> lock;
    std::atomic<bool> passed{false};
    fork_gate.close();
    std::thread other([&] {
        Guard guard(lock);
        passed = true;
    });
    std::this_thread::sleep_for(a_while);
    EXPECT_FALSE(passed);
    fork_gate.open();
    other.join();
    EXPECT_TRUE(passed);
}

TEST(ForkGate, TryingForALockFailsMeanwhile) {
    Lock<LockRank::size_class> lock;
    fork_gate.close();
    std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
    fork_gate.open();
    std::thread([&] {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    }).join();
}

TEST(ForkGate, LetsTheThreadPassThatClosedIt) {
    Lock<LockRank::size_class> lock;
    fork_gate.close();
    { Guard guard(lock); }
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    fork_gate.open();
}

// With a mark of its own, or with the one that all others share; it may take further locks meanwhile.
void waits_for_who_holds_locks(LockMark* mark) {
    Lock<LockRank::size_class> outer;
    Lock<LockRank::pages> inner;
    std::atomic<bool> holds{false}, done{false};
    std::thread other([&] {
        use_lock_mark(mark);
        {
            Guard guard(outer);
            holds = true;
            std::this_thread::sleep_for(a_while);
            Guard further(inner);
            done = true;
        }
        use_lock_mark(nullptr);
    });
    while (!holds) std::this_thread::yield();
    fork_gate.close();
    if (mark != nullptr) fork_gate.wait_for(*mark);
    EXPECT_TRUE(done);
    EXPECT_TRUE(outer.try_lock());
    outer.unlock();
    fork_gate.open();
    other.join();
}
TEST(ForkGate, WaitsForWhoHoldsLocks) {
    LockMark mark;
    waits_for_who_holds_locks(&mark);
}
TEST(ForkGate, WaitsForWhoHoldsLocksAndHasNoMarkOfItsOwn) { waits_for_who_holds_locks(nullptr); }

TEST(ForkGate, OneForkAtATime) {
    std::atomic<bool> closed{false};
    fork_gate.close();
    std::thread other([&] {
        fork_gate.close();
        closed = true;
        fork_gate.open();
    });
    std::this_thread::sleep_for(a_while);
    EXPECT_FALSE(closed);
    fork_gate.open();
    other.join();
    EXPECT_TRUE(closed);
}

// A handler that forks: the gate stays closed until the outer fork is over.
TEST(ForkGate, ForksWithinAForkNest) {
    Lock<LockRank::size_class> lock;
    fork_gate.close();
    fork_gate.close();
    fork_gate.open();
    std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
    fork_gate.open();
    std::thread([&] {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    }).join();
}

// Held by a thread of the parent, which is not here to give it back.
TEST(ForkGate, InTheChildALockOfTheParentIsFree) {
    Lock<LockRank::size_class> lock;
    Lock<LockRank::pages> tried;
    LockMark mark;
    std::atomic<int> stage{0};
    std::thread holder([&] {
        use_lock_mark(&mark);
        lock.lock();
        tried.lock();
        stage = 1;
        while (stage == 1) std::this_thread::yield();
        tried.unlock();
        lock.unlock();
    });
    while (stage == 0) std::this_thread::yield();
    // Without close(): it would wait for the holder, which stands for one that was on its way back from the gate.
    const std::uint32_t generation = fork_gate.generation();
    fork_gate.become_child();
    EXPECT_EQ(fork_gate.generation(), generation + 1);
    lock.lock();
    EXPECT_TRUE(tried.try_lock());
    std::thread([&] {
        EXPECT_FALSE(lock.try_lock());
        EXPECT_FALSE(tried.try_lock());
    }).join();
    tried.unlock();
    lock.unlock();
    stage = 2;
    holder.join();
}

// A thread that another library's handler has started in the child, before ours.
TEST(ForkGate, AThreadOlderThanTheChildsGateIsNotCountedTwice) {
    std::atomic<int> stage{0};
    std::thread older([&] {
        fork_gate.enter();  // counted in the shared mark
        stage = 1;
        while (stage == 1) std::this_thread::yield();
        fork_gate.leave();
    });
    while (stage == 0) std::this_thread::yield();
    fork_gate.become_child();
    stage = 2;
    older.join();
    std::uint32_t sleeps = few_sleeps;
    ASSERT_TRUE(fork_gate.try_close(sleeps)) << "waits for a thread that is not there";
    fork_gate.open();
}

// Threads of such handlers are kept out until the heap has forgotten the parent's.
TEST(ForkGate, TheChildsGateOpensLast) {
    fork_gate.close();
    fork_gate.become_child();
    EXPECT_TRUE(fork_gate.is_closed());
    fork_gate.open();
    EXPECT_FALSE(fork_gate.is_closed());
}

TEST(ForkGate, WhoMustNotWaitIsTurnedAway) {
    fork_gate.close();
    std::thread([] {
        const Inside inside;
        EXPECT_FALSE(inside);
    }).join();
    { EXPECT_TRUE(Inside()); }  // its own
    fork_gate.open();
    std::thread([] {
        const Inside inside;
        EXPECT_TRUE(inside);
    }).join();
}

// A fork waits for a lock of libc that a thread holds, and that thread waits for the fork: each time for less.
TEST(ForkGate, WaitsInVainGrowShorter) {
    for (std::uint32_t before = fork_gate.patience(), i = 0; i < 12; ++i) {
        fork_gate.close();
        std::thread([&] {
            EXPECT_FALSE(fork_gate.wait_briefly());
            EXPECT_EQ(fork_gate.patience(), before > 200 ? before / 2 : 100);
            before = fork_gate.patience();
            EXPECT_FALSE(fork_gate.wait_briefly()) << "not a second time";
            EXPECT_EQ(fork_gate.patience(), before);
        }).join();
        fork_gate.open();
    }
    EXPECT_EQ(fork_gate.patience(), 100U);
}

// A fork waits for a thread that is inside, which may enter again and take locks.
TEST(ForkGate, WaitsForWhoIsInside) {
    Lock<LockRank::pages> lock;
    LockMark mark;
    for (LockMark* const own : {&mark, static_cast<LockMark*>(nullptr)}) {
        std::atomic<bool> in{false}, closing{false}, done{false};
        std::thread other([&] {
            use_lock_mark(own);
            {
                const Inside inside;
                EXPECT_TRUE(inside);
                in = true;
                while (!closing) std::this_thread::yield();
                std::this_thread::sleep_for(a_while);
                EXPECT_TRUE(Inside());
                Guard guard(lock);
                done = true;
            }
            use_lock_mark(nullptr);
        });
        while (!in) std::this_thread::yield();
        closing = true;
        fork_gate.close();
        fork_gate.wait_for(mark);
        EXPECT_TRUE(done);
        fork_gate.open();
        other.join();
    }
}

// A signal handler that forks: another thread waits, inside, for a lock that the interrupted code holds.
TEST(ForkGate, DoesNotWaitWhereItInterruptedTheHeap) {
    Lock<LockRank::pages> lock;
    std::atomic<bool> comes{false};
    lock.lock();
    std::thread other([&] {
        comes = true;
        Guard guard(lock);
    });
    while (!comes) std::this_thread::yield();
    std::this_thread::sleep_for(a_while);
    fork_gate.close();
    fork_gate.open();
    lock.unlock();
    other.join();
}

// A thread that gets its heap inside changes from the shared mark to its own.
TEST(ForkGate, WaitsForWhoChangesItsMarkInside) {
    LockMark marks[2];
    std::atomic<bool> in{false}, done{false};
    std::thread other([&] {
        {
            const Inside inside;
            in = true;
            for (int i = 0; i < 200; ++i) {
                use_lock_mark(i % 3 == 2 ? nullptr : &marks[i % 3]);
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(a_while);
            done = true;
        }
        use_lock_mark(nullptr);
    });
    while (!in) std::this_thread::yield();
    fork_gate.close();
    std::uint32_t changed;
    do {
        changed = fork_gate.mark_changes();
        fork_gate.wait_for_sharers();
        for (const LockMark& mark : marks) fork_gate.wait_for(mark);
    } while (changed != fork_gate.mark_changes());
    EXPECT_TRUE(done);
    for (const LockMark& mark : marks) EXPECT_EQ(mark.inside.load(), 0U);
    fork_gate.open();
    other.join();
}

}  // namespace
}  // namespace numalloc::os
