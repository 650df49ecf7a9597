// The budget that the lists of a node's threads share.
#include "heap/node/list_budget.h"

#include <gtest/gtest.h>

namespace numalloc {
namespace {

constexpr Bytes step = policy::lists::grant;
constexpr Bytes limit = policy::lists::any_node_may_hold;

// Grants until the budget refuses. The thread's total.
Bytes take_all(ListBudget& budget, Bytes granted, std::uint32_t threads) {
    for (Bytes more; (more = budget.grant(granted, threads)) > granted;) granted = more;
    return granted;
}

TEST(ListBudget, GrantsUpToTheLimit) {
    ListBudget budget;
    EXPECT_EQ(budget.grant(0, 1), step);
    EXPECT_EQ(take_all(budget, step, 1), limit);
    budget.take_back(step);
    EXPECT_EQ(budget.grant(limit - step, 1), limit);
}

TEST(ListBudget, TheLimitFollowsWhatIsInUse) {
    ListBudget budget;
    budget.set_in_use(64 * limit);
    EXPECT_EQ(take_all(budget, 0, 1), 2 * limit);
    budget.set_in_use(0);
    budget.take_back(limit);
    EXPECT_EQ(budget.grant(limit, 1), limit) << "the rest is the whole budget again";
}

constexpr Bytes each = policy::lists::for_each_running;
constexpr std::uint32_t many = 70;
static_assert(many * each > 2 * limit);
// Of which a quarter is what `many` may hold.
constexpr Bytes enough = 4 * many * each;

TEST(ListBudget, TheLimitGrowsWithTheThreadsThatRunAtATime) {
    ListBudget budget;
    budget.set_in_use(enough);
    for (unsigned cpu = 0; cpu < many; ++cpu) budget.saw(static_cast<int>(7 * cpu));
    EXPECT_EQ(take_all(budget, 0, 2), limit) << "two threads run on two CPUs at a time";
    EXPECT_EQ(take_all(budget, limit, many), many * each);
    EXPECT_EQ(take_all(budget, many * each, 3 * many), many * each) << "no more run than there are CPUs";
    budget.set_in_use(2 * enough);
    budget.saw(1);
    EXPECT_EQ(budget.grant(many * each, many), many * each);
    EXPECT_EQ(take_all(budget, many * each, many + 1), (many + 1) * each);
}

TEST(ListBudget, ButNotBeyondAQuarterOfWhatIsInUse) {
    ListBudget budget;
    for (unsigned cpu = 0; cpu < many; ++cpu) budget.saw(static_cast<int>(cpu));
    EXPECT_EQ(take_all(budget, 0, many), limit);
    budget.set_in_use(enough / 2);
    EXPECT_EQ(take_all(budget, limit, many), many * each / 2);
}

TEST(ListBudget, FewCpusAreOftenTheSame) {
    ListBudget budget;
    budget.set_in_use(enough);
    for (unsigned i = 0; i < many; ++i) budget.saw(static_cast<int>(i % 4));
    EXPECT_EQ(take_all(budget, 0, many), limit) << "four CPUs of a large machine";
}

TEST(ListBudget, WhatWasGrantedAboveALimitThatFellGoesBack) {
    ListBudget budget;
    for (unsigned cpu = 0; cpu < many; ++cpu) budget.saw(static_cast<int>(cpu));
    budget.set_in_use(enough);
    const Bytes all = take_all(budget, 0, many);
    ASSERT_EQ(all, many * each);
    EXPECT_EQ(budget.kept(all, many), all);
    EXPECT_EQ(budget.kept(all, 4), limit) << "the others have ended";
    EXPECT_EQ(budget.kept(limit / 4, 4), limit / 4) << "no more than a share";
    budget.set_in_use(enough - 1);
    EXPECT_EQ(budget.kept(all, many), all - step) << "not all above a share";
    budget.take_back(step);
    EXPECT_EQ(budget.kept(all - step, many), all - step);
}

TEST(ListBudget, ARefusedThreadGetsItsShare) {
    ListBudget budget;
    const Bytes all = take_all(budget, 0, 4);
    EXPECT_EQ(budget.kept(all, 4), all) << "nobody else has asked";
    EXPECT_EQ(budget.grant(0, 4), 0u);
    const Bytes kept = budget.kept(all, 4);
    EXPECT_EQ(kept, limit / 4);
    budget.take_back(all - kept);
    EXPECT_EQ(budget.kept(all, 4), all) << "one thread is enough";
    EXPECT_EQ(take_all(budget, 0, 4), limit - limit / 4);
}

TEST(ListBudget, AThreadWithAShareDisturbsNobody) {
    ListBudget budget;
    const Bytes half = limit / 2;
    for (Bytes granted = 0; granted < half;) granted = budget.grant(granted, 2);
    EXPECT_EQ(take_all(budget, 0, 2), half);
    EXPECT_EQ(budget.grant(half, 2), half);
    EXPECT_EQ(budget.kept(limit, 2), limit);
}

TEST(ListBudget, AChildHasItsOwnThreadsGrant) {
    ListBudget budget;
    take_all(budget, 0, 1);
    budget.leave_behind(step);
    EXPECT_EQ(take_all(budget, step, 1), limit);

    budget.set_in_use(enough);
    for (unsigned cpu = 0; cpu < many; ++cpu) budget.saw(static_cast<int>(cpu));
    budget.leave_behind(step);
    EXPECT_EQ(take_all(budget, step, many), limit) << "and may run on other CPUs";
}

}  // namespace
}  // namespace numalloc
