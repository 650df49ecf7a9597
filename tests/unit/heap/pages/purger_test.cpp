// When free memory goes back to the system, and when it waits for the program to want it again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "support/made_up_clock.h"
#include "support/made_up_node.h"

namespace numalloc {
namespace {

std::atomic<bool> stops_in_discard{false}, in_discard{false}, waits_or_gave_up{false};

}  // namespace
}  // namespace numalloc

extern "C" {

bool __real__ZN8numalloc2os7discardEPvm(void* p, numalloc::Bytes bytes);
bool __wrap__ZN8numalloc2os7discardEPvm(void* p, numalloc::Bytes bytes) {
    if (numalloc::stops_in_discard.exchange(false)) {
        numalloc::in_discard = true;
        while (!numalloc::waits_or_gave_up) std::this_thread::yield();
    }
    return __real__ZN8numalloc2os7discardEPvm(p, bytes);
}

bool __real__ZN8numalloc2os15wait_for_changeERKSt6atomicIjEjRj(const std::atomic<std::uint32_t>&, std::uint32_t,
                                                               std::uint32_t&);
bool __wrap__ZN8numalloc2os15wait_for_changeERKSt6atomicIjEjRj(const std::atomic<std::uint32_t>& word,
                                                               std::uint32_t value, std::uint32_t& sleeps) {
    numalloc::waits_or_gave_up = true;
    sleeps = 1U << 20;  // the other thread may take its time
    return __real__ZN8numalloc2os15wait_for_changeERKSt6atomicIjEjRj(word, value, sleeps);
}

}  // extern "C"

namespace numalloc {
namespace {

using testing::advance_clock;
using testing::Node;

// A delay means the same where the clock wraps, after 49 days.
constexpr std::uint32_t clocks[] = {testing::clock_start, testing::before_wrap(1), testing::before_wrap(20)};

TEST(PageHeapPurge, DelayZeroGivesBackAtOnce) {
    Node node(0);
    const BagIndex run = node.take_filled(64), wall = node.take(1);
    EXPECT_NE(wall, PageHeap::none);
    node.pages.give(run);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    EXPECT_EQ(node.pages.use().purged_bags, 64u);
    EXPECT_EQ(node.at(run)[5], 0);
}

// What the kernel refuses to take is free and resident, before it is used again and after.
TEST(PageHeapPurge, WhatTheKernelRefusesStaysDirty) {
    Node node(0);
    const std::uint32_t bags = PageHeap::whole_pages(2);
    const BagIndex run = node.take_filled(bags), wall = node.take(1);
    EXPECT_NE(wall, PageHeap::none);
    // ThreadSanitizer makes libc's mlock() do nothing.
    if (syscall(SYS_mlock, node.at(run), bags * bag_bytes) != 0 || syscall(SYS_mlockall, MCL_FUTURE) != 0)
        GTEST_SKIP() << "no memory can be locked here";
    node.pages.give(run);
    EXPECT_EQ(node.pages.use().purged_bags, 0u);
    EXPECT_EQ(node.pages.use().dirty_bags, bags);
    node.pages.validate();
    EXPECT_EQ(node.take(bags), run);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    EXPECT_EQ(node.dirty(run, bags), bags);
    syscall(SYS_munlockall);
    node.pages.give(run);
    advance_clock(policy::purge::refusal_lasts);
    EXPECT_EQ(node.pages.purge(true), bags * bag_bytes);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    node.pages.validate();
}

TEST(PageHeapPurge, WhatTheKernelRefusedIsTriedAgainByMallocTrim) {
    Node node(0);
    const std::uint32_t bags = PageHeap::whole_pages(2);
    const BagIndex first = node.take_filled(bags), between = node.take(1), second = node.take_filled(bags);
    const BagIndex wall = node.take(1);
    EXPECT_TRUE(between != PageHeap::none && wall != PageHeap::none);
    if (syscall(SYS_mlock, node.at(first), bags * bag_bytes) != 0 ||
        syscall(SYS_mlock, node.at(second), bags * bag_bytes) != 0 || syscall(SYS_mlockall, MCL_FUTURE) != 0)
        GTEST_SKIP() << "no memory can be locked here";
    node.pages.give(first);
    node.pages.give(second);
    EXPECT_EQ(node.pages.purge(true), 0u);
    EXPECT_EQ(node.pages.use().dirty_bags, 2 * bags);
    syscall(SYS_munlockall);
    EXPECT_EQ(node.pages.purge(true), 2 * bags * bag_bytes);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    node.pages.validate();
}

// The region has no such run but the one that another thread is purging just now. Its system call does not return until
// this thread waits for it, or has given up.
TEST(PageHeapPurge, ARequestWaitsForThePurgeOfWhatItNeeds) {
    Node node(-1, 96 * MiB);
    const std::uint32_t bags = bags_in(64 * MiB);
    const BagIndex run = node.take_filled(bags), wall = node.take(1);
    EXPECT_NE(wall, PageHeap::none);
    node.pages.give(run);
    stops_in_discard = true;
    std::thread purges([&] { node.pages.purge(true); });
    while (!in_discard) std::this_thread::yield();
    EXPECT_EQ(node.take(bags), run);
    waits_or_gave_up = true;
    purges.join();
}

// free() of a locked block unlocks it under glibc, which unmaps it.
TEST(PageHeapPurge, WhatTheProgramLockedGoesAndIsUnlocked) {
    Node node(0);
    const std::uint32_t bags = PageHeap::whole_pages(8);
    const BagIndex run = node.take_filled(bags), wall = node.take(1);
    EXPECT_NE(wall, PageHeap::none);
    if (syscall(SYS_mlock, node.at(run) + bag_bytes, bag_bytes) != 0) GTEST_SKIP() << "no memory can be locked here";
    node.pages.give(run);
    EXPECT_EQ(node.pages.use().purged_bags, bags);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    node.pages.validate();
    EXPECT_EQ(node.take(bags), run);
    for (Bytes at = 0; at < bags * bag_bytes; ++at) ASSERT_EQ(node.at(run)[at], 0);
    EXPECT_EQ(madvise(node.at(run), bags * bag_bytes, MADV_DONTNEED), 0) << "still locked";
    node.pages.give(run);
}

TEST(PageHeapPurge, DelayOfASecondKeepsALittleUntilItIsOver) {
    Node node(1000);
    const BagIndex run = node.take_filled(64), wall = node.take(1);  // 2 MiB: below the limit
    EXPECT_NE(wall, PageHeap::none);
    node.pages.give(run);
    EXPECT_EQ(node.pages.use().dirty_bags, 64u);
    EXPECT_EQ(node.pages.purge(false), 0u);
    EXPECT_EQ(node.at(run)[5], char(0xEE));
    EXPECT_EQ(node.pages.purge(true), 64 * bag_bytes) << "malloc_trim does not wait";
    EXPECT_EQ(node.at(run)[5], 0);
}

TEST(PageHeapPurge, WhatHasRestedLongEnoughGoes) {
    for (const std::uint32_t clock : clocks) {
        testing::set_clock(clock);
        Node node(30);
        const BagIndex run = node.take_filled(64), other = node.take_filled(1);
        node.pages.give(run);
        advance_clock(29);
        EXPECT_EQ(node.pages.purge(false), 0u);
        EXPECT_EQ(node.at(run)[5], char(0xEE));
        advance_clock(1);
        node.pages.give(other);  // any free looks at the clock
        EXPECT_EQ(node.at(run)[5], 0);
        EXPECT_EQ(node.at(other)[5], char(0xEE)) << "coalesced with what is older, but freed just now";
        advance_clock(29);
        EXPECT_EQ(node.pages.purge(false), 0u);
        advance_clock(1);
        EXPECT_EQ(node.pages.purge(false), PageHeap::whole_pages(1) * bag_bytes) << "no longer than its own delay";
    }
}

TEST(PageHeapPurge, ANeighbourTakesNothingYoungWithIt) {
    for (const std::uint32_t clock : clocks) {
        testing::set_clock(clock);
        Node node(1000);
        const BagIndex young = node.take_filled(20), old = node.take_filled(80), right = node.take_filled(20);
        node.pages.give(old);
        advance_clock(800);
        node.pages.give(young);
        node.pages.give(right);
        advance_clock(199);
        EXPECT_EQ(node.pages.purge(false), 0u);
        advance_clock(1);
        EXPECT_EQ(node.pages.purge(false), 80 * bag_bytes);
        EXPECT_EQ(node.at(old)[5], 0);
        for (const BagIndex run : {young, right}) EXPECT_EQ(node.at(run)[5], char(0xEE));
        EXPECT_EQ(node.pages.use().dirty_bags, 40u);
        advance_clock(800);
        EXPECT_EQ(node.pages.purge(false), 40 * bag_bytes) << "two delays are the most";
        node.pages.validate();
    }
}

TEST(PageHeapPurge, SmallFreesBesideItHoldNothingBack) {
    Node node(100);
    const BagIndex small = node.take_filled(1), old = node.take_filled(80);
    node.pages.give(old);
    node.pages.give(small);
    for (int i = 0; i < 30; ++i) {
        advance_clock(10);
        node.pages.give(node.take_filled(1));
    }
    EXPECT_EQ(node.at(old)[5], 0);
    EXPECT_LE(node.pages.use().dirty_bags, PageHeap::whole_pages(1));
}

// As much of it as exceeds the limit, from its end.
TEST(PageHeapPurge, ALongRunGoesInPart) {
    Node node(20000);
    const BagIndex run = node.take_filled(1000), wall = node.take_filled(1);
    node.pages.give(run);
    EXPECT_GE(node.pages.use().dirty_bags, DirtyLimit::floor * 3 / 4);
    EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor);
    EXPECT_EQ(node.at(run)[5], char(0xEE));
    EXPECT_EQ(node.at(run)[999 * bag_bytes], 0);
    node.pages.validate();
    node.pages.give(wall);
}

TEST(PageHeapPurge, DelayMinusOneKeepsEverything) {
    Node node(-1);
    const BagIndex run = node.take_filled(1024);  // 32 MiB: above every limit
    node.pages.give(run);
    advance_clock(1U << 30);
    EXPECT_EQ(node.pages.purge(false), 0u);
    EXPECT_EQ(node.pages.use().dirty_bags, 1024u);
    EXPECT_EQ(node.pages.purge(true), 1024 * bag_bytes);
}

TEST(PageHeapPurge, MuchFreeMemoryDoesNotWait) {
    Node node(1000);
    std::vector<BagIndex> runs;
    for (int i = 0; i < 32; ++i) runs.push_back(node.take_filled(32));  // 32 times 1 MiB
    for (const BagIndex run : runs) node.pages.give(run);
    EXPECT_LE(node.pages.use().dirty_bags, 3 * DirtyLimit::floor);
    EXPECT_GE(node.pages.use().purged_bags, 512u);
}

// Half as much again is free at times, but it was only replaced by something shorter: nothing goes early.
TEST(PageHeapPurge, WhatIsReplacedAtRandomStays) {
    Node node(20000, 1 * GiB);
    std::mt19937 random(3);
    std::vector<BagIndex> runs(60);
    for (BagIndex& run : runs) run = node.take_filled(64);
    std::uint64_t most_dirty = 0;
    for (int i = 0; i < 5000; ++i) {
        BagIndex& run = runs[random() % runs.size()];
        node.pages.give(run);
        most_dirty = std::max(most_dirty, node.pages.use().dirty_bags);
        run = node.take_filled(8U << random() % 5);
    }
    EXPECT_GT(most_dirty, DirtyLimit::floor + 60u * 64 / 4) << "nothing that a limit would have sent back";
    EXPECT_EQ(node.pages.use().purged_bags, 0u);
}

// A tenth of what goes is replaced: that is a fall.
TEST(PageHeapPurge, AProgramThatShrinksGivesBackAsItShrinks) {
    Node node(20000, 1 * GiB);
    std::vector<BagIndex> runs;
    for (int i = 0; i < 256; ++i) runs.push_back(node.take_filled(32));
    while (runs.size() > 16) {
        for (int i = 0; i < 10; ++i) {
            node.pages.give(runs.back());
            runs.pop_back();
        }
        runs.push_back(node.take_filled(32));
    }
    EXPECT_LE(node.pages.use().dirty_bags, 256u * 32 / 4);
}

// Two go for each that comes: what was taken counts as often as what was given, and nobody may call again.
TEST(PageHeapPurge, AReductionByPairsKeepsTwiceWhatItUses) {
    Node node(20000, 1 * GiB);
    std::vector<BagIndex> runs;
    for (int i = 0; i < 256; ++i) runs.push_back(node.take_filled(32));
    while (runs.size() > 1) {
        std::vector<BagIndex> sums;
        for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
            sums.push_back(node.take_filled(32));
            node.pages.give(runs[i]);
            node.pages.give(runs[i + 1]);
        }
        runs = sums;
    }
    EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor + 2u * 32);
}

// Takes and gives 16 MiB in runs of one length, with a pause between, in milliseconds, as a program has that writes to
// them.
void take_and_give(Node& node, std::uint32_t length, std::uint32_t pause) {
    std::vector<BagIndex> runs;
    for (std::uint32_t taken = 0; taken + length <= 512; taken += length) runs.push_back(node.take_filled(length));
    advance_clock(pause);
    for (const BagIndex run : runs) node.pages.give(run);
}

// A program that takes and gives the same in a fast loop must not pay page faults in every round.
TEST(PageHeapPurge, AFastLoopKeepsItsMemory) {
    for (const std::uint32_t pause : {0U, 5U, 20U, 28U}) {
        Node node(20000);
        for (int i = 0; i < 40; ++i) take_and_give(node, 32, pause);
        const std::uint64_t before = node.pages.use().purged_bags;
        EXPECT_GT(before, 0u) << "the first round is no loop yet";
        for (int i = 0; i < 4; ++i) take_and_give(node, 32, pause);
        EXPECT_EQ(node.pages.use().purged_bags, before) << "pause " << pause;
    }
}

// In a slow one they cost little, and what stayed would stay when the program waits after the last round.
TEST(PageHeapPurge, ASlowLoopGivesBackItsMemoryInEachRound) {
    for (const std::uint32_t pause : {60U, 500U, 2000U}) {
        Node node(20000);
        for (int i = 0; i < 20; ++i) {
            take_and_give(node, 32, pause);
            EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor) << "pause " << pause;
        }
    }
}

// The same as the fast loop by growing in place: what grows is taken, and counts as in use at most.
TEST(PageHeapPurge, ALoopThatGrowsInPlaceKeepsItsMemory) {
    Node node(20000);
    const auto round = [&] {
        const BagIndex run = node.take_filled(1);
        ASSERT_TRUE(node.pages.resize(run, 512));
        node.fill(run, 512);
        node.pages.give(run);
    };
    for (int i = 0; i < 4; ++i) round();
    const std::uint64_t before = node.pages.use().purged_bags;
    for (int i = 0; i < 4; ++i) round();
    EXPECT_EQ(node.pages.use().purged_bags, before);
}

// While one thread purges, others free: neither is what they freed old, nor what was purged forgotten.
TEST(PageHeapPurge, ALoopOfSeveralThreadsKeepsItsMemory) {
    Node node(20000, 1 * GiB);
    constexpr unsigned threads = 4, blocks = 64, length = 32;
    std::vector<BagIndex> runs(threads * blocks);
    const auto round = [&] {
        for (BagIndex& run : runs) run = node.take_filled(length);
        std::vector<std::thread> team;
        for (unsigned t = 0; t < threads; ++t)
            team.emplace_back([&, t] {
                for (unsigned i = t * blocks; i < (t + 1) * blocks; ++i) node.pages.give(runs[i]);
            });
        for (std::thread& t : team) t.join();
    };
    for (int i = 0; i < 3; ++i) round();
    const std::uint64_t before = node.pages.use().purged_bags;
    for (int i = 0; i < 5; ++i) round();
    EXPECT_LE(node.pages.use().purged_bags - before, 5 * length);
    node.pages.validate();
}

// Phases, each larger than the one before, are no loop: the last one leaves what the limit allows.
TEST(PageHeapPurge, PhasesThatGrowLeaveAQuarter) {
    Node node(20000, 1 * GiB);
    std::vector<BagIndex> runs;
    std::uint32_t most = 0;
    for (std::uint32_t blocks = 96; blocks < 300; blocks += blocks / 5) {
        for (std::uint32_t i = 0; i < blocks; ++i) runs.push_back(node.take_filled(32));
        for (const BagIndex run : runs) node.pages.give(run);
        runs.clear();
        most = blocks * 32;
    }
    EXPECT_LE(node.pages.use().dirty_bags, (most + most / 8) / 4 + 32);
}

TEST(PageHeapPurge, TheMemoryOfALoopThatIsOverGoesAfterTheDelay) {
    Node node(400);
    for (int i = 0; i < 8; ++i) take_and_give(node, 32, 0);
    advance_clock(500);
    const BagIndex last = node.take_filled(1);
    node.pages.give(last);
    while (node.pages.purge(false) > 0) {}
    EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor);
    // What was kept for the loop is forgotten.
    take_and_give(node, 32, 0);
    EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor);
}

// However much is due: a call is as long as what it frees, or as 8 MiB.
TEST(PageHeapPurge, ACallGivesBackABoundedPart) {
    Node node(100);
    constexpr std::uint32_t blocks = 64, length = 32;
    std::vector<BagIndex> runs;
    for (std::uint32_t i = 0; i < blocks; ++i) {
        runs.push_back(node.take_filled(length));
        (void)node.take_filled(length);  // stays, and lets a quarter of it rest
    }
    const BagIndex one = node.take_filled(1);
    for (const BagIndex run : runs) node.pages.give(run);
    const std::uint64_t rest = node.pages.use().dirty_bags;
    ASSERT_GT(rest, 500u);
    advance_clock(150);
    const std::uint64_t before = node.pages.use().purged_bags;
    node.pages.give(one);
    EXPECT_GT(node.pages.use().purged_bags, before);
    EXPECT_LE(node.pages.use().purged_bags, before + 256);
    while (node.pages.purge(false) > 0) EXPECT_LE(node.pages.use().purged_bags, before + rest);
    EXPECT_EQ(node.pages.use().dirty_bags, PageHeap::whole_pages(1));
}

TEST(PageHeapPurge, OtherSizesAreNoLoop) {
    Node node(20000);
    const std::uint32_t page = PageHeap::whole_pages(1);
    for (const std::uint32_t length : {1u, 2u, 4u, 5u, 6u, 7u, 8u, 16u, 20u, 32u, 64u})
        take_and_give(node, length * page, 0);
    EXPECT_LE(node.pages.use().dirty_bags, DirtyLimit::floor);
}

}  // namespace
}  // namespace numalloc
