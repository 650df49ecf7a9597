// Huge pages: they go back whole, or what is left of them stays small.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/advice.h"
#include "support/made_up_clock.h"
#include "support/made_up_node.h"

namespace numalloc {
namespace {

using testing::advance_clock;
using testing::Node;

constexpr std::uint32_t huge_bags = 64;
constexpr std::uint32_t stretch_bags = 32 * huge_bags;

struct HugeNode : Node {
    explicit HugeNode(std::int32_t purge_delay, bool (*touch_is_dear)(void*, Bytes) = nullptr)
        : Node(purge_delay, 1 * GiB, 8192, true, false, touch_is_dear) {
        below = take(pages.region().huge_from().value - pages.region().first_bag().value);
    }
    // What the kernel does to the rest of a huge page when a bag of it is touched.
    void touch(BagIndex b) { *at(b) = 1; }
    bool is_touched(BagIndex b) { return *at(b) != 0; }
    // What is taken next begins a stretch. Where the kernel put the region, that may be up to a stretch further on.
    void take_to_stretch() {
        const Address next = address_of(at(pages.region().huge_from()));
        const auto bags = static_cast<std::uint32_t>((0 - next) % (stretch_bags * bag_bytes) / bag_bytes);
        if (bags > 0) take(bags);
    }
    std::string advice(BagIndex b) { return testing::advice_at(at(b)); }
    BagIndex below;
};

// What exceeds the limit goes from the end of a run: there in part, and down to a huge page's start.
TEST(PagesHuge, TheyGoWhole) {
    HugeNode node(20000);
    const BagIndex run = node.take_filled(8 * 64 + 7), wall = node.take_filled(1);
    ASSERT_EQ(run, node.pages.region().huge_from());
    node.pages.give(run);
    const auto dirty = static_cast<std::uint32_t>(node.pages.use().dirty_bags);
    ASSERT_GT(dirty, 0u);
    ASSERT_LT(dirty, 8u * 64);
    EXPECT_EQ(dirty % 64, 0u);
    EXPECT_EQ(node.at(run)[dirty * bag_bytes - 1], char(0xEE));
    EXPECT_EQ(node.at(run)[dirty * bag_bytes], 0);
    EXPECT_EQ(node.at(run)[(8 * 64 + 7) * bag_bytes - 1], 0);
    (void)wall;
    node.pages.validate();
}

// Nobody knows whether the clean bags beside it are resident: they may be, with the huge page that it lies in.
TEST(PagesHuge, WhatTheKernelPutBesideABagGoesWithIt) {
    HugeNode node(0);
    const BagIndex all = node.take_filled(2 * huge_bags);
    (void)node.take(1);
    node.pages.give(all);
    ASSERT_FALSE(node.is_touched(all + 1));
    const BagIndex left = node.take_filled(huge_bags / 2), one = node.take_filled(1);
    ASSERT_EQ(left, all);
    node.pages.give(left);
    for (const BagIndex b : {left, left + 1, one + 1, all + (huge_bags - 1)}) node.touch(b);
    node.pages.give(one);
    for (const BagIndex b : {left, left + 1, one + 1, all + (huge_bags - 1)})
        EXPECT_FALSE(node.is_touched(b)) << (b - all);
    node.pages.validate();
}

// Clean bags that no dirty one lies beside, but used ones.
TEST(PagesHuge, GivingBackAllTakesWhatLiesBesideUsedBags) {
    HugeNode node(20000);
    const BagIndex run = node.take_filled(4 * huge_bags - 2), wall = node.take(1);
    node.pages.give(run);
    node.pages.purge(true);
    const BagIndex one = node.take_filled(2);
    ASSERT_EQ(one, run);
    const BagIndex first_end = run + huge_bags, last_begin = run + 3 * huge_bags;
    for (const BagIndex b : {one + 2, first_end - 1, last_begin, wall - 1}) node.touch(b);
    node.pages.purge(true);
    for (const BagIndex b : {one + 2, first_end - 1, last_begin, wall - 1})
        EXPECT_FALSE(node.is_touched(b)) << (b - run);
    EXPECT_TRUE(node.is_touched(one));
    node.pages.validate();
}

// Each time the bags that went before lie beside the next one: they are no progress.
TEST(PagesHuge, GivingBackAllLeavesNothingOfManyAges) {
    HugeNode node(-1);
    std::vector<BagIndex> runs;
    for (int i = 0; i < 64; ++i) runs.push_back(node.take_filled(2));
    const BagIndex wall = node.take_filled(2);
    for (const BagIndex run : runs) {
        node.pages.give(run);
        advance_clock(2);
    }
    node.pages.purge(true);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    (void)wall;
}

// Where a page holds several bags: the half that is free waits for the other, and does not keep what was freed after
// it.
TEST(PagesHuge, HalfAPageBesideCleanBagsHoldsNothingUp) {
    HugeNode node(10);
    const auto small = [&](std::uint32_t bags) {
        const BagIndex run = node.pages.take(bags, 1, BagState::small);
        node.fill(run, bags);
        return run;
    };
    const BagIndex other_half = small(1), half = small(1), behind = small(20), wall = small(2);
    const BagIndex later = small(640), end = small(2);
    const auto wait = [] { advance_clock(30); };
    node.pages.give(behind);
    wait();
    node.pages.purge(false);
    node.pages.give(half);
    wait();
    node.pages.give(later);
    wait();
    for (int i = 0; i < 4; ++i) node.pages.purge(false);
    EXPECT_LE(node.pages.use().dirty_bags, 1u);
    node.pages.validate();
    (void)other_half;
    (void)wall;
    (void)end;
}

// khugepaged would fill it again.
TEST(PagesHuge, AStretchWithABrokenOneIsAdvisedAgainstThemUntilItIsFreeWhole) {
    for (const bool second_half : {false, true}) {
        HugeNode node(0);
        const BagIndex first = node.take_filled(huge_bags / 2), second = node.take_filled(huge_bags / 2);
        const BagIndex gone = second_half ? second : first, stays = second_half ? first : second;
        const BagIndex rest = node.take(3 * stretch_bags), wall = node.take(1);
        if (node.advice(stays) != "hg") GTEST_SKIP() << "a kernel without huge pages";
        node.pages.give(gone);
        EXPECT_EQ(node.advice(stays), "nh");
        EXPECT_EQ(node.advice(rest + stretch_bags), "hg") << "the next stretch";
        // A part of the stretch is in use: first the end of it, then the beginning or the middle.
        const BagIndex again = node.take(1);
        EXPECT_EQ(again, gone);
        EXPECT_EQ(node.advice(stays), "nh");
        node.pages.give(rest);
        node.pages.give(again);
        EXPECT_EQ(node.take(1), gone);
        EXPECT_EQ(node.advice(stays), "nh");
        node.pages.give(gone);
        node.pages.give(stays);
        EXPECT_EQ(node.take(1), first);
        EXPECT_EQ(node.advice(first), "hg");
        EXPECT_EQ(node.advice(wall - 1), "hg");
        node.pages.validate();
    }
}

// A mapping that was changed is advised anew.
TEST(PagesHuge, WhatIsSettledHasTheAdviceThatItHad) {
    HugeNode node(0);
    node.take_to_stretch();
    const BagIndex gone = node.take_filled(huge_bags / 2), stays = node.take_filled(huge_bags / 2);
    const BagIndex half = node.take_filled(huge_bags / 2), other = node.take_filled(huge_bags / 2);
    if (node.advice(stays) != "hg") GTEST_SKIP() << "a kernel without huge pages";
    node.pages.give(gone);
    ASSERT_EQ(node.advice(half), "nh");
    ASSERT_EQ(madvise(node.at(half), huge_bags * bag_bytes, MADV_HUGEPAGE), 0);
    node.pages.settle(half, huge_bags);
    EXPECT_EQ(node.advice(half), "nh");
    EXPECT_EQ(node.advice(other), "nh");
    node.pages.validate();
}

constexpr std::uint32_t slow_in_a_row = policy::huge_pages::dear_from / policy::huge_pages::slow_counts;

bool dear;
std::vector<void*> touched;
bool touch_is_dear(void* p, Bytes) { return touched.push_back(p), dear; }

// The host may find memory faster later.
TEST(PagesHuge, WhereOneIsDearTheNextAreNormalForAWhile) {
    // The last clock makes the end of that while 0, which stands for "none was dear".
    for (const std::uint32_t clock :
         {testing::clock_start, testing::before_wrap(20), testing::before_wrap(policy::huge_pages::dear_for)}) {
        testing::set_clock(clock);
        dear = false;
        HugeNode node(0, touch_is_dear);
        node.take_to_stretch();
        dear = true;
        touched.clear();
        const BagIndex first = node.take_filled(stretch_bags);
        if (node.advice(first) == "") GTEST_SKIP() << "a kernel without huge pages";
        ASSERT_EQ(touched.size(), slow_in_a_row);
        for (std::uint32_t i = 0; i < slow_in_a_row; ++i) EXPECT_EQ(touched[i], node.at(first + i * huge_bags));
        EXPECT_EQ(node.advice(first), "nh");
        dear = false;
        advance_clock(policy::huge_pages::dear_for - 1);
        const BagIndex soon = node.take(1);
        EXPECT_EQ(node.advice(soon), "nh") << "the next stretch";
        advance_clock(3);
        const BagIndex rest = node.take(stretch_bags - 1);
        EXPECT_EQ(node.advice(rest), "nh") << "the rest of a stretch that began so";
        const BagIndex later = node.take(1);
        EXPECT_EQ(node.advice(later), "hg") << "the one after it";
        EXPECT_EQ(node.advice(soon), "nh");
        EXPECT_EQ(touched.size(), slow_in_a_row + 1);
        EXPECT_EQ(touched.back(), node.at(later)) << "the first one after that while is timed";
        node.pages.validate();
    }
}

bool first_few_are_dear(void* p, Bytes) { return touched.push_back(p), dear && touched.size() < slow_in_a_row; }

// The thread lost its CPU during some touches.
TEST(PagesHuge, AFewDearTouchesAreNotEnough) {
    dear = false;  // how many are touched before the stretch depends on the region's address
    HugeNode node(0, first_few_are_dear);
    node.take_to_stretch();
    dear = true;
    touched.clear();
    const BagIndex first = node.take_filled(stretch_bags);
    if (node.advice(first) == "") GTEST_SKIP() << "a kernel without huge pages";
    EXPECT_EQ(touched.size(), policy::huge_pages::touched_at_once) << "no more of a run that may stay unused";
    EXPECT_EQ(node.advice(first), "hg");
}

// They are taken one by one, under a lock, and timed after that.
TEST(PagesHuge, HugePagesOfSmallBagsAreTimed) {
    constexpr std::uint32_t pages = 8;
    dear = false;
    HugeNode node(0, touch_is_dear);
    node.take_to_stretch();
    const BagIndex first = node.take(pages * huge_bags), wall = node.take(1);
    if (node.advice(wall) == "") GTEST_SKIP() << "a kernel without huge pages";
    node.pages.give(first);
    dear = true;
    touched.clear();
    for (std::uint32_t i = 0; i < pages * huge_bags; ++i) {
        ASSERT_EQ(node.pages.take_small_at_once(1, ClassId{1}), first + i) << "mapped already, and clean";
        // Of the first one too few bytes are the caller's.
        node.pages.sample_cost_of_small(first + i, 1, policy::huge_pages::timed_from - (i == 0));
    }
    ASSERT_EQ(touched.size(), slow_in_a_row);
    for (std::uint32_t i = 0; i < slow_in_a_row; ++i) EXPECT_EQ(touched[i], node.at(first + (i + 1) * huge_bags));
    EXPECT_EQ(node.advice(wall), "nh");
    node.pages.validate();
}

// What was free whole is asked about like what is new.
TEST(PagesHuge, WhereOneIsDearAStretchThatIsFreeWholeStaysNormal) {
    dear = false;
    HugeNode node(0, touch_is_dear);
    node.take_to_stretch();
    const BagIndex gone = node.take_filled(huge_bags / 2), stays = node.take_filled(huge_bags / 2);
    const BagIndex rest = node.take(stretch_bags - huge_bags);
    if (node.advice(stays) != "hg") GTEST_SKIP() << "a kernel without huge pages";
    dear = true;
    (void)node.take(policy::huge_pages::a_sample * huge_bags);
    dear = false;
    for (const BagIndex run : {gone, stays, rest}) node.pages.give(run);
    EXPECT_EQ(node.take(1), gone);
    EXPECT_EQ(node.advice(gone), "nh");
    node.pages.give(gone);
    advance_clock(policy::huge_pages::dear_for + 1);
    EXPECT_EQ(node.take(1), gone);
    EXPECT_EQ(node.advice(gone), "hg");
    node.pages.validate();
}

// Each touch is the caller's own first one, and only some are timed.
TEST(PagesHuge, OneInAFewIsTimed) {
    dear = false;
    touched.clear();
    HugeNode node(0, touch_is_dear);
    node.take_to_stretch();
    touched.clear();
    std::vector<void*> pages;
    for (std::uint32_t i = 0; i < 4 * policy::huge_pages::a_sample; ++i) {
        const BagIndex run = node.take(huge_bags);
        if (i == 0 && node.advice(run) == "") GTEST_SKIP() << "a kernel without huge pages";
        pages.push_back(node.at(run));
    }
    EXPECT_EQ(touched.size(), 4u);
    for (void* p : touched) EXPECT_EQ(std::count(pages.begin(), pages.end(), p), 1);
}

TEST(PagesHuge, WhatIsResidentIsNotTimed) {
    dear = false;
    HugeNode node(-1, touch_is_dear);
    const BagIndex run = node.take_filled(4 * policy::huge_pages::a_sample * huge_bags);
    node.pages.give(run);
    touched.clear();
    EXPECT_EQ(node.take(4 * policy::huge_pages::a_sample * huge_bags), run);
    EXPECT_TRUE(touched.empty());
}

TEST(PagesHuge, AWholeOneBreaksNothing) {
    HugeNode node(0);
    const BagIndex before = node.take_filled(huge_bags), whole = node.take_filled(huge_bags),
                   after = node.take_filled(1);
    if (node.advice(before) != "hg") GTEST_SKIP() << "a kernel without huge pages";
    node.pages.give(whole);
    EXPECT_EQ(node.advice(before), "hg");
    EXPECT_EQ(node.advice(after), "hg");
}

}  // namespace
}  // namespace numalloc
