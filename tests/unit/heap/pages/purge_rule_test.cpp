// When free memory is due to be purged. purger_test.cpp has the limit on what may stay.
#include "heap/pages/purge_rule.h"

#include <gtest/gtest.h>

namespace numalloc {
namespace {

constexpr std::uint32_t length = 100;
constexpr std::uint32_t in_use = 1000;

Bag::Free freed_at(std::uint32_t since) {
    Bag::Free piece{};
    piece.length = length;
    piece.since = since;
    return piece;
}

TEST(PurgeRule, APieceThatRestedIsDueAsAWhole) {
    PurgeRule rule;
    rule.set_delay(1000);
    for (const std::uint32_t since : {0U, 0U - 500U}) {
        EXPECT_EQ(rule.due(freed_at(since), length, in_use, 1, since + 999).bags, 0U);
        const PurgeRule::Due due = rule.due(freed_at(since), length, in_use, 1, since + 1000);
        EXPECT_EQ(due.bags, length);
        EXPECT_TRUE(due.rested);
    }
    rule.set_delay(0);
    EXPECT_EQ(rule.due(freed_at(7), length, in_use, 1, 7).bags, length) << "at once";
}

TEST(PurgeRule, TheExcessIsDueEarly) {
    PurgeRule rule;
    rule.set_delay(1000);
    const std::uint32_t dirty = 3 * in_use;
    const PurgeRule::Due due = rule.due(freed_at(7), dirty, in_use, 1, 8);
    EXPECT_EQ(due.bags, dirty - policy::dirty::idle_part * in_use + bags_in(policy::purge::beyond_due));
    EXPECT_FALSE(due.rested);
}

TEST(PurgeRule, PausesWithoutADelayAndAfterARefusal) {
    PurgeRule rule;
    rule.set_delay(-1);
    EXPECT_TRUE(rule.pauses(7));
    EXPECT_EQ(rule.together(), 0U);
    rule.set_delay(1000);
    EXPECT_FALSE(rule.pauses(7));
    rule.on_answer(true, 7);
    EXPECT_TRUE(rule.pauses(7 + policy::purge::refusal_lasts - 1));
    EXPECT_FALSE(rule.pauses(7 + policy::purge::refusal_lasts));
    rule.on_answer(false, 8);
    EXPECT_FALSE(rule.pauses(8));
}

TEST(PurgeRule, OnlyWhatWasPurgedEarlyIsRegretted) {
    for (const bool rested : {false, true}) {
        PurgeRule rule;
        rule.set_delay(1000);
        rule.on_give(1, length, 7);
        rule.on_purge(length, rested, 8);
        EXPECT_EQ(rule.on_take(1, length, length, in_use, 9), rested ? 0U : length);
    }
}

TEST(PurgeRule, ALongRunPaysForMore) {
    const std::uint32_t a_call = bags_in(policy::purge::a_call);
    EXPECT_EQ(PurgeRule::most_after(0), a_call);
    EXPECT_EQ(PurgeRule::most_after(a_call), policy::purge::for_freed * a_call);
}

}  // namespace
}  // namespace numalloc
