// When the threads that have ended are many: the picture in ended_threads.h.
#include "heap/node/ended_threads.h"

#include <gtest/gtest.h>

#include <vector>

namespace numalloc {
namespace {

using namespace policy::ended_threads;
using Counts = std::vector<std::uint32_t>;

// Threads start until there are `most`, then they end one by one, 1 ms apart, until `left` of them are there.
Counts due_while_ending(EndedThreads& ended, std::uint32_t most, std::uint32_t left, std::uint32_t& now) {
    for (std::uint32_t threads = 1; threads <= most; ++threads) ended.on_start(threads);
    Counts due;
    for (std::uint32_t threads = most; threads-- > left; ++now)
        if (ended.many(threads) && ended.are_due(threads, now)) due.push_back(threads);
    return due;
}

TEST(EndedThreads, AreDueWhenAThirdIsLeftAndAgain) {
    std::uint32_t now = 5;
    EndedThreads ended;
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), (Counts{3, 1}));
    EndedThreads all;
    EXPECT_EQ(due_while_ending(all, 100, 0, now), (Counts{33, 11, 3, 1, 0}));
}

TEST(EndedThreads, OneBesideAnotherIsNotDue) {
    std::uint32_t now = 5;
    EndedThreads ended;
    EXPECT_EQ(due_while_ending(ended, 2, 1, now), Counts{});
}

TEST(EndedThreads, ATeamInThePauseIsNotDue) {
    std::uint32_t now = UINT32_MAX - 20;  // the clock begins again at 0 soon
    EndedThreads ended;
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), (Counts{3, 1}));
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), Counts{});
    EXPECT_EQ(due_while_ending(ended, 9, 0, now), Counts{0}) << "fewer than before";
}

TEST(EndedThreads, ATeamThatEndedInThePauseCountsLater) {
    std::uint32_t now = 5;
    EndedThreads ended;
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), (Counts{3, 1}));
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), Counts{});
    now += first_pause;
    EXPECT_EQ(due_while_ending(ended, 2, 1, now), Counts{1});
}

TEST(EndedThreads, PausesOfALoopDouble) {
    std::uint32_t now = 5;
    EndedThreads ended;
    unsigned due = 0;
    // The sixth pause, which is the longest, ends after 100 * (2^6 - 1) ms.
    for (const std::uint32_t end = now + 63 * first_pause; now < end;)
        due += due_while_ending(ended, 9, 1, now).empty() ? 0 : 1;
    EXPECT_EQ(due, 6U);
    now += pauses_of_rest * longest_pause;
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), (Counts{3, 1}));
    now += first_pause;
    EXPECT_EQ(due_while_ending(ended, 9, 1, now), (Counts{3, 1})) << "after a rest the pause is short";
}

TEST(EndedThreads, ThreadsOfTheParentHaveNotEnded) {
    EndedThreads ended;
    for (std::uint32_t threads = 1; threads <= 9; ++threads) ended.on_start(threads);
    EXPECT_TRUE(ended.many(1));
    ended.leave_behind(1);
    EXPECT_FALSE(ended.many(1));
}

TEST(EndedThreads, NoPauseIsLongerThanTheLongest) {
    std::uint32_t now = 5;
    EndedThreads ended;
    for (int i = 0; i < 40; ++i, now += longest_pause) EXPECT_FALSE(due_while_ending(ended, 9, 1, now).empty()) << i;
}

}  // namespace
}  // namespace numalloc
