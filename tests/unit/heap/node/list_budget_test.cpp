// The budget that the lists of a node's threads share.
#include "heap/node/list_budget.h"

#include <gtest/gtest.h>

namespace numalloc {
namespace {

constexpr Bytes step = policy::lists::grant;
constexpr Bytes limit = policy::lists::all_may_hold(0);

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
}

}  // namespace
}  // namespace numalloc
