// Sweeps: pages of bags that a program has left behind return to the system without malloc_trim(), in small steps, when
// the bags have grown and less than half of them is in use.
#include "heap/node/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "support/made_up_class_heap.h"

namespace numalloc {
namespace {

constexpr Bytes page = 4 * KiB;

class SweepTest : public testing::ClassHeapFixture {
protected:
    SweepTest() { sweep_.set_purge_delay(1000); }

    Bytes there() { return shards().there(); }
    bool is_due() { return sweep_.is_due(there()); }
    void step() { sweep_.step(shards(), node.pages, now_); }
    Bytes returned() { return node.pages.use().returned_bytes; }
    // Makes steps until none is due. Returns their number.
    int sweep() {
        now_ += 1000;
        int steps = 0;
        for (; is_due() && steps < 100'000; ++steps) step();
        EXPECT_FALSE(is_due());
        return steps;
    }
    // Objects of about so many bytes, sorted by address.
    std::vector<void*> take_bytes(ClassId c, Bytes bytes, unsigned shard = 0) {
        std::vector<void*> all = take_many(c, bytes / shape_of(c).size, shard);
        std::sort(all.begin(), all.end());
        for (void* o : all) *static_cast<Bytes*>(o) = address_of(o);
        return all;
    }
    // Frees all but one of each bag; these are the result.
    std::vector<void*> leave_behind(ClassId c, const std::vector<void*>& all) {
        std::vector<void*> kept, freed;
        for (std::size_t i = 0; i < all.size(); ++i) (i % shape_of(c).objects == 5 ? kept : freed).push_back(all[i]);
        of(c).give_to_bags(list_of(freed));
        for (void* o : kept) EXPECT_EQ(*static_cast<Bytes*>(o), address_of(o));
        return kept;
    }
    void free_all(ClassId c, const std::vector<void*>& all) {
        for (void* o : all) ASSERT_EQ(*static_cast<Bytes*>(o), address_of(o));
        of(c).give_to_bags(list_of(all));
    }

    Sweep sweep_;
    std::uint32_t now_ = 0;
};

const ClassId small = class_of(1008);
const ClassId medium = class_of(5 * KiB);
const ClassId tiny = class_of(64);

TEST_F(SweepTest, WhatAProgramLeavesBehindGoesWhenItGrows) {
    const auto first = leave_behind(small, take_bytes(small, 40 * MiB));
    EXPECT_EQ(returned(), 0u);
    const auto second = take_bytes(medium, 8 * MiB);
    ASSERT_TRUE(is_due());
    const Bytes before = there();
    sweep();
    // Of a bag's eight pages one or two are in use.
    EXPECT_GE(returned(), 40 * MiB * 6 / 8);
    EXPECT_NEAR(double(before - there()), double(returned()), double(2 * MiB));
    const std::uint64_t bags = of(small).use().bags;
    const auto again = take_bytes(small, 36 * MiB);
    EXPECT_EQ(of(small).use().bags, bags) << "refills take them back";
    free_all(small, again);
    free_all(small, first);
    free_all(medium, second);
    of(medium).drain(false);
    expect_nothing_held(small);
    expect_nothing_held(medium);
}

TEST_F(SweepTest, NothingGoesWhileHalfIsInUse) {
    take_bytes(small, 40 * MiB);
    leave_behind(medium, take_bytes(medium, 30 * MiB));
    EXPECT_GT(sweep(), 0);
    EXPECT_EQ(returned(), 0u);
    leave_behind(tiny, take_bytes(tiny, 30 * MiB));
    sweep();
    EXPECT_GE(returned(), 60 * MiB * 6 / 8);
}

TEST_F(SweepTest, SmallHeapsAreNotSwept) {
    leave_behind(small, take_bytes(small, 15 * MiB));
    EXPECT_FALSE(is_due());
}

TEST_F(SweepTest, AStepIsShort) {
    for (const ClassId c : {tiny, small, medium}) leave_behind(c, take_bytes(c, 16 * MiB));
    take_bytes(class_of(32), 4 * MiB);
    now_ = 1000;
    int steps = 0;
    for (; is_due(); ++steps) {
        const Bytes before = returned();
        step();
        ASSERT_LE(returned() - before, 4 * shape_of(medium).bags * bag_bytes);
    }
    EXPECT_GT(returned(), 40 * MiB);
    EXPECT_GT(steps, 300);
}

TEST_F(SweepTest, TheNextOneWaitsForGrowth) {
    const auto first = leave_behind(small, take_bytes(small, 40 * MiB));
    auto in_use = take_bytes(medium, 8 * MiB);
    sweep();
    const Bytes once = returned();
    leave_behind(tiny, take_bytes(tiny, 3 * MiB));
    EXPECT_EQ(sweep(), 0) << "3 MiB are no growth";
    leave_behind(tiny, take_bytes(tiny, 16 * MiB));
    EXPECT_GT(sweep(), 0);
    EXPECT_GT(returned(), once + 12 * MiB);
}

// Its phases come again: pages that a sweep returns are soon needed again.
TEST_F(SweepTest, ALoopIsSoonNotSweptAnyMore) {
    const ClassId classes[] = {tiny, class_of(200), class_of(500), small, class_of(2000), medium};
    for (const ClassId c : classes) leave_behind(c, take_bytes(c, 16 * MiB));
    sweep();
    EXPECT_GT(returned(), 60 * MiB);
    Bytes before = 0;
    for (int round = 0; round < 20; ++round) {
        if (round == 10) before = returned();
        for (const ClassId c : classes) {
            free_all(c, take_bytes(c, 14 * MiB));
            sweep();
        }
    }
    EXPECT_GT(before, 0u);
    EXPECT_EQ(returned(), before);
}

TEST_F(SweepTest, ObjectsFreedAtRandomCostLittle) {
    auto all = take_bytes(tiny, 64 * MiB);
    std::shuffle(all.begin(), all.end(), std::mt19937{1});
    of(tiny).give_to_bags(list_of({all.begin() + long(all.size() / 3), all.end()}));
    const Bytes before = there();
    // 12 steps count. 1 MiB of free objects are in 48 bags.
    EXPECT_LT(sweep(), 12 + 48 / 4 + 8);
    EXPECT_LT(returned(), 1 * MiB);
    // Two thirds were looked at in vain: half of that is the growth before the next sweep.
    const auto more = take_bytes(medium, before / 4);
    EXPECT_FALSE(is_due());
    const auto enough = take_bytes(medium, before / 6);
    EXPECT_TRUE(is_due());
}

TEST_F(SweepTest, NoneWithoutPurges) {
    sweep_.set_purge_delay(-1);
    leave_behind(small, take_bytes(small, 40 * MiB));
    EXPECT_FALSE(is_due());
    sweep_.set_purge_delay(0);
    EXPECT_TRUE(is_due());
    for (int i = 0; i < 13; ++i) step();
    sweep_.set_purge_delay(-1);
    EXPECT_FALSE(is_due());
    const Bytes before = returned();
    for (int i = 0; i < 1000; ++i) step();  // of a thread that had seen it due
    EXPECT_EQ(returned(), before);
    EXPECT_LT(before, 1 * MiB);
}

TEST_F(SweepTest, WhatIsThereIsCounted) {
    EXPECT_EQ(there(), 0u);
    for (const Bytes size : {16, 64, 80, 1008, 4096, 5120, 20480, 100'000}) {
        const ClassId c = class_of(size);
        const auto all = take_many(c, 4 * shape_of(c).objects);
        const Bytes whole = there();
        EXPECT_EQ(whole, of(c).use().bags * shape_of(c).bags * bag_bytes) << size;
        std::vector<void*> rest(all.begin() + 1, all.end());
        of(c).give_to_bags(list_of(rest));
        const Bytes bags = there();
        const Bytes pages = of(c).return_free_pages(now_ += 1000);
        EXPECT_NEAR(double(bags - there()), double(pages), double(2 * page + shape_of(c).size)) << size;
        const auto again = take_many(c, shape_of(c).objects / 2 + 1);
        of(c).give_to_bags(list_of(again));
        of(c).give_to_bags(list_of({all[0]}));
        expect_nothing_held(c);
        EXPECT_EQ(there(), 0u) << size;
    }
}

// Several threads make steps, while others allocate and free.
TEST_F(SweepTest, ThreadsStepAndAllocateAtTheSameTime) {
    constexpr unsigned workers = 3;
    std::atomic<unsigned> at_work{workers};
    for (unsigned t = 0; t < workers; ++t) put(small, list_of(take_many(small, 1, t)));  // opens the shards
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < workers; ++t)
        threads.emplace_back([&, t] {
            std::vector<std::pair<ClassId, std::vector<void*>>> left;
            for (int phase = 0; phase < 6; ++phase) {
                const ClassId c = phase % 2 == 0 ? small : medium;
                left.emplace_back(c, leave_behind(c, take_bytes(c, 8 * MiB, t)));
            }
            while (returned() == 0) std::this_thread::yield();
            for (const auto& [c, objects] : left) free_all(c, objects);
            at_work.fetch_sub(1);
        });
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&] {
            while (at_work.load() > 0)
                if (is_due()) step();
                else std::this_thread::yield();
        });
    for (std::thread& t : threads) t.join();
    for (const ClassId c : {small, medium}) of(c).drain(false);
    for (const ClassId c : {small, medium}) expect_nothing_held(c);
    EXPECT_EQ(there(), 0u);
    EXPECT_GT(returned(), 0u);
}

}  // namespace
}  // namespace numalloc
