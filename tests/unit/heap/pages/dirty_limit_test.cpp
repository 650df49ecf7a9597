// Long runs, which go at once unless they come back. purger_test.cpp has what else may stay.
#include "heap/pages/dirty_limit.h"

#include <gtest/gtest.h>

#include "support/made_up_clock.h"
#include "support/made_up_node.h"

namespace numalloc {
namespace {

using testing::advance_clock;
using testing::Node;

// A delay means the same where the clock wraps, after 49 days.
constexpr std::uint32_t clocks[] = {testing::clock_start, testing::before_wrap(1), testing::before_wrap(20)};

// An array that grows by doubling, as std::vector does it, fits into none of the blocks that it leaves.
TEST(DirtyLimit, AnArrayThatGrowsLeavesLittleBehind) {
    for (const std::uint32_t clock : clocks) {
        Node node(20000, 2 * GiB);
        testing::set_clock(clock);
        BagIndex array = node.take(1);
        for (std::uint32_t length = 2; length <= 16 * DirtyLimit::long_run; length *= 2) {
            const BagIndex longer = node.take(length);
            advance_clock(1);
            node.pages.give(array);
            EXPECT_LT(node.pages.use().dirty_bags, DirtyLimit::long_run + DirtyLimit::floor) << length;
            array = longer;
        }
        node.pages.give(array);
    }
}

// A program that takes such blocks again and again pays page faults once, even if it uses them for a long time.
TEST(DirtyLimit, LongRunsThatComeBackStay) {
    for (const std::uint32_t clock : clocks) {
        Node node(1000, 2 * GiB);
        testing::set_clock(clock);
        const BagIndex wall = node.take(4 * DirtyLimit::long_run);
        const auto use = [&](std::uint32_t how_long) {
            const BagIndex run = node.take(DirtyLimit::long_run);
            advance_clock(how_long);
            node.pages.give(run);
            return node.pages.use().dirty_bags;
        };
        EXPECT_EQ(use(400), 0u);
        for (const std::uint32_t how_long : {0U, 400U, 5000U}) {
            advance_clock(1000);
            node.pages.purge(true);  // so that it is not for its used memory that the run stays
            EXPECT_EQ(use(how_long), DirtyLimit::long_run) << how_long;
        }
        for (const std::uint32_t free_for : {1001U, 5000U}) {
            advance_clock(free_for);
            node.pages.purge(true);
            EXPECT_EQ(use(1), 0u) << "was free for longer";
        }
        // A shorter one of its kind comes back as well.
        const BagIndex longer = node.take(DirtyLimit::long_run / 8 * 9);
        node.pages.give(longer);
        use(1);
        node.pages.purge(true);
        EXPECT_EQ(use(5000), DirtyLimit::long_run);
        node.pages.purge(true);
        // Nor if another of its kind was.
        const BagIndex other = node.take(DirtyLimit::long_run), run = node.take(DirtyLimit::long_run);
        node.pages.give(other);
        EXPECT_EQ(use(1), DirtyLimit::long_run);
        advance_clock(1001);
        node.pages.purge(true);
        node.pages.give(run);
        EXPECT_EQ(node.pages.use().dirty_bags, 0u);
        node.pages.give(wall);
    }
}

// A block on memory that was in use before brought none, and what was there before will be needed again.
TEST(DirtyLimit, ALongRunOnUsedMemoryStays) {
    for (const bool mostly : {false, true}) {
        Node node(20000, 2 * GiB);
        const BagIndex wall = node.take(8 * DirtyLimit::long_run);
        const BagIndex used = node.take(mostly ? DirtyLimit::long_run / 4 * 3 : DirtyLimit::long_run / 4);
        node.pages.give(used);
        const BagIndex run = node.take(DirtyLimit::long_run);
        ASSERT_EQ(run, used);
        node.pages.give(run);
        EXPECT_EQ(node.pages.use().dirty_bags, mostly ? DirtyLimit::long_run : 0u);
        node.pages.give(wall);
    }
}

// What else is free stays, older or younger, beside it or not.
TEST(DirtyLimit, ALongRunThatGoesTakesNothingWithIt) {
    for (const bool shrinks : {false, true}) {
        Node node(20000, 2 * GiB);
        const BagIndex before = node.take_filled(32), run = node.take(DirtyLimit::long_run + 1);
        const BagIndex behind = node.take_filled(32), wall = node.take(2 * DirtyLimit::long_run);
        node.pages.give(before);
        advance_clock(5000);
        node.pages.give(behind);
        if (shrinks) ASSERT_TRUE(node.pages.resize(run, 1));
        else node.pages.give(run);
        EXPECT_EQ(node.pages.use().dirty_bags, 64u);
        EXPECT_EQ(node.at(before)[0], char(0xEE));
        EXPECT_EQ(node.at(behind)[32 * bag_bytes - 1], char(0xEE));
        node.pages.validate();
        if (shrinks) node.pages.give(run);
        node.pages.give(wall);
    }
}

// With huge pages its ends leave nothing behind: the clean bags of its first and last huge page were faulted in with
// it.
TEST(DirtyLimit, ALongRunTakesTheRestOfItsHugePages) {
    Node node(20000, 2 * GiB, 8192, true);
    const BagIndex start = node.take(node.pages.region().huge_from() - node.pages.region().first_bag());
    const BagIndex before = node.take(48), run = node.take(DirtyLimit::long_run), behind = node.take(32);
    const BagIndex wall = node.take(2 * DirtyLimit::long_run);
    node.pages.give(before);
    node.pages.give(behind);
    node.pages.purge(true);
    ASSERT_EQ(node.at(before)[0], 0);
    node.at(run - 1)[5] = 1;  // as the kernel would have it resident with the run's first page
    node.at(behind)[5] = 1;
    node.pages.give(run);
    EXPECT_EQ(node.at(run - 1)[5], 0);
    EXPECT_EQ(node.at(behind)[5], 0);
    node.pages.validate();
    node.pages.give(wall);
    node.pages.give(start);
}

}  // namespace
}  // namespace numalloc
