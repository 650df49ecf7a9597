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
        EXPECT_EQ(rule.on_take(1, length, length, in_use, 7), 0U);
        EXPECT_FALSE(rule.on_give(1, length, false, 7));
        rule.on_purge(length, rested, 7);
        EXPECT_EQ(rule.on_take(1, length, length, in_use, 7), rested ? 0U : length);
    }
}

// One round of `length` bags, `at_once` of them at a time. Returns how many it regrets; `wait` runs before it frees
// them.
template <typename Wait>
std::uint32_t regretted_in_a_round(PurgeRule& rule, std::uint32_t& now, std::uint32_t at_once, Wait wait) {
    std::uint32_t regretted = 0;
    for (std::uint32_t i = 0; i < length; i += at_once) regretted += rule.on_take(1, at_once, at_once, in_use, now);
    wait();
    for (std::uint32_t i = 0; i < length; i += at_once) {
        EXPECT_FALSE(rule.on_give(1, at_once, false, now));
        rule.on_purge(at_once, false, now);
    }
    return regretted;
}
std::uint32_t regretted_in_a_round(PurgeRule& rule, std::uint32_t& now) {
    return regretted_in_a_round(rule, now, length, [] {});
}

// Twenty rounds that start every `period` milliseconds, while the clock wraps. The program waits before it frees the
// bags or after that.
std::uint32_t regretted_in_rounds(std::uint32_t period, std::uint32_t at_once, bool waits_first) {
    PurgeRule rule;
    rule.set_delay(1000);
    std::uint32_t now = 0U - 5 * period, regretted = 0;
    for (int round = 0; round < 20; ++round) {
        regretted += regretted_in_a_round(rule, now, at_once, [&] { now += waits_first ? period : 0; });
        now += waits_first ? 0 : period;
    }
    return regretted;
}

TEST(PurgeRule, RoundsThatFollowFastRegretWhatTheyFaultIn) {
    const std::uint32_t fills = length / policy::dirty::slow_pace;
    for (const std::uint32_t at_once : {1U, length})
        for (const bool waits_first : {false, true}) {
            EXPECT_EQ(regretted_in_rounds(0, at_once, waits_first), 19 * length) << "all but the first round's";
            EXPECT_GT(regretted_in_rounds(fills / 2, at_once, waits_first), 15 * length);
            EXPECT_EQ(regretted_in_rounds(fills + 1, at_once, waits_first), 0U);
            EXPECT_EQ(regretted_in_rounds(500, at_once, waits_first), 0U);
        }
}

// A large peak, of which nothing comes back, does not hide that a loop is fast.
TEST(PurgeRule, WhatDoesNotComeBackSaysNothingOfALoop) {
    constexpr std::uint32_t peak = 50 * length;
    for (const std::uint32_t slow_rounds : {0U, 8U}) {
        PurgeRule rule;
        rule.set_delay(1000);
        std::uint32_t now = 7;
        EXPECT_EQ(rule.on_take(2, peak, peak, in_use + peak, now), 0U);
        now += 900;
        EXPECT_FALSE(rule.on_give(2, peak, false, now));
        rule.on_purge(peak, false, now);
        if (slow_rounds == 0) now += 1001;
        for (std::uint32_t i = 0; i < slow_rounds; ++i) {
            now += 500;
            EXPECT_EQ(regretted_in_a_round(rule, now), 0U);
        }
        now += 500;
        EXPECT_EQ(regretted_in_a_round(rule, now), 0U);
        EXPECT_EQ(regretted_in_a_round(rule, now), length);
        EXPECT_EQ(regretted_in_a_round(rule, now), length);
    }
}

constexpr std::uint32_t long_run = DirtyLimit::long_run;
const unsigned long_kind = DirtyLimit::kind_of(no_class, long_run);

// What a long run brought and took away is no part of the peak up to which regretted memory may stay.
TEST(PurgeRule, ALongRunThatGoesLeavesNoPeak) {
    for (const bool fresh : {false, true}) {
        PurgeRule rule;
        rule.set_delay(1000);
        std::uint32_t now = 7;
        for (int round = 0; round < 40; ++round) regretted_in_a_round(rule, now);
        EXPECT_EQ(rule.on_take(long_kind, long_run, long_run, in_use + long_run, now), 0U);
        EXPECT_EQ(rule.on_give(long_kind, long_run, fresh, now), fresh);
        EXPECT_FALSE(rule.on_give(2, 2 * in_use, false, now));
        const std::uint32_t always = DirtyLimit::floor + in_use / policy::dirty::in_use_part;
        const std::uint32_t due = rule.due(freed_at(now), always + length, in_use, 1, now).bags;
        EXPECT_EQ(due, fresh ? length + bags_in(policy::purge::beyond_due) : 0U) << fresh;
    }
}

// A block that grows in place by a bag takes no long run again, although it will be freed as one.
TEST(PurgeRule, GrowthInPlaceTakesNoLongRunAgain) {
    PurgeRule rule;
    rule.set_delay(1000);
    EXPECT_TRUE(rule.on_give(long_kind, long_run, true, 7));
    EXPECT_EQ(rule.on_take(long_kind, 1, 1, in_use, 7), 0U);
    EXPECT_TRUE(rule.on_give(long_kind, long_run, true, 7));
    EXPECT_EQ(rule.on_take(long_kind, long_run, long_run, in_use, 7), 0U);
    EXPECT_FALSE(rule.on_give(long_kind, long_run, true, 7)) << "which a new one does";
}

// Memory that was taken fast before a slow loop makes the loop no faster, whether it stays in use or is freed.
TEST(PurgeRule, WhatWasTakenFastIsForgotten) {
    constexpr std::uint32_t much = 1'000'000;
    for (const bool stays : {true, false}) {
        PurgeRule rule;
        rule.set_delay(1000);
        std::uint32_t now = 7;
        EXPECT_EQ(rule.on_take(2, much, much, much, now), 0U);
        now += stays ? 1001 : 400;
        if (!stays) {
            EXPECT_FALSE(rule.on_give(2, much, false, now));
            rule.on_purge(much, false, now);
            now += 100;
        }
        for (int i = 0; i < 300; ++i) {
            EXPECT_EQ(regretted_in_a_round(rule, now), 0U) << (stays ? "in use, round " : "freed, round ") << i;
            now += 2 * length / policy::dirty::slow_pace;
        }
    }
}

TEST(PurgeRule, AFastLoopMayBeLargerThanWhatLeaksInPurgeDelay) {
    constexpr auto large = static_cast<std::uint32_t>(2000 * policy::dirty::slow_pace);
    PurgeRule rule;
    rule.set_delay(1000);
    for (std::uint32_t round = 0, now = 7; round < 3; ++round, now += 100) {
        EXPECT_EQ(rule.on_take(1, large, large, large, now) > large / 2, round == 2);
        EXPECT_FALSE(rule.on_give(1, large, false, now));
        rule.on_purge(large, false, now);
    }
}

TEST(PurgeRule, APurgeAmidARoundMakesItNoFaster) {
    PurgeRule rule;
    rule.set_delay(1000);
    for (std::uint32_t now = 7; now < 4000; now += 500) {
        EXPECT_EQ(rule.on_take(1, length / 2, length / 2, in_use, now), 0U);
        rule.on_purge(1, false, now);
        EXPECT_EQ(rule.on_take(1, length / 2, length / 2, in_use, now), 0U);
        EXPECT_FALSE(rule.on_give(1, length, false, now));
        rule.on_purge(length, false, now);
    }
}

TEST(PurgeRule, ALongRunPaysForMore) {
    const std::uint32_t a_call = bags_in(policy::purge::a_call);
    EXPECT_EQ(PurgeRule::most_after(0), a_call);
    EXPECT_EQ(PurgeRule::most_after(a_call), policy::purge::for_freed * a_call);
}

}  // namespace
}  // namespace numalloc
