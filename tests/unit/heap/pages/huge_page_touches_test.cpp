// Which first touches of huge pages are timed, and when they make huge pages dear.
#include "heap/pages/huge_page_touches.h"

#include <gtest/gtest.h>

#include "support/made_up_clock.h"

namespace numalloc {
namespace {

using Cost = HugePageTouches::Cost;
using testing::advance_clock;

constexpr std::uint32_t slow_in_a_row = policy::huge_pages::dear_from / policy::huge_pages::slow_counts;

bool dear;
Cost touch(HugePageTouches& touches, bool is_dear) {
    dear = is_dear;
    return touches.time(nullptr, policy::huge_pages::timed_from);
}

class Touches : public ::testing::Test {
protected:
    void SetUp() override {
        testing::set_clock(testing::clock_start);
        touches.start([](void*, Bytes) { return dear; });
    }
    void make_dear() {
        for (std::uint32_t i = 1; i < slow_in_a_row; ++i) ASSERT_EQ(touch(touches, true), Cost::unsure);
        ASSERT_EQ(touch(touches, true), Cost::dear);
    }
    HugePageTouches touches;
};

TEST_F(Touches, TheFirstIsDueAndThenOneInAFew) {
    EXPECT_TRUE(touches.take_sample());
    EXPECT_EQ(touch(touches, false), Cost::cheap);
    for (std::uint32_t i = 1; i < policy::huge_pages::a_sample; ++i) {
        touches.count(1);
        EXPECT_FALSE(touches.take_sample()) << i;
    }
    touches.count(1);
    EXPECT_TRUE(touches.take_sample());
    EXPECT_FALSE(touches.take_sample());
}

TEST_F(Touches, BeforeTheFirstNoneWasDear) {
    for (const std::uint32_t clock : {testing::clock_start, testing::before_wrap(1), 0U}) {
        testing::set_clock(clock);
        EXPECT_FALSE(touches.were_dear()) << clock;
    }
}

TEST_F(Touches, AfterASlowOneTheNextIsDue) {
    EXPECT_TRUE(touches.take_sample());
    EXPECT_EQ(touch(touches, true), Cost::unsure);
    for (std::uint32_t i = 1; i < policy::huge_pages::slow_counts; ++i) {
        EXPECT_TRUE(touches.take_sample());
        EXPECT_EQ(touch(touches, false), Cost::unsure) << "one slow one outweighs few fast ones";
    }
    EXPECT_TRUE(touches.take_sample());
    EXPECT_EQ(touch(touches, false), Cost::cheap);
    EXPECT_FALSE(touches.take_sample());
}

TEST_F(Touches, AFewSlowOnesAmongManyFastOnesProveNothing) {
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const bool slow = i % (policy::huge_pages::slow_counts + 1) == 0;
        EXPECT_NE(touch(touches, slow), Cost::dear);
    }
    for (std::uint32_t i = 1; i < slow_in_a_row; ++i) EXPECT_EQ(touch(touches, true), Cost::unsure);
    EXPECT_FALSE(touches.were_dear());
    EXPECT_EQ(touch(touches, true), Cost::dear);
    EXPECT_TRUE(touches.were_dear());
}

// The memory that another program freed a moment ago is fast, and what the host has to find lies between.
TEST_F(Touches, ManySlowOnesAmongFastOnesMakeThemDear) {
    std::uint32_t touched = 0;
    while (touch(touches, touched++ % 2 == 0) != Cost::dear) ASSERT_LT(touched, 10U);
    EXPECT_TRUE(touches.were_dear());
}

TEST_F(Touches, TheFirstOneAfterThatWhileDecidesAlone) {
    for (const bool again : {true, false}) {
        make_dear();
        advance_clock(policy::huge_pages::dear_for);
        EXPECT_TRUE(touches.were_dear());
        advance_clock(1);
        EXPECT_FALSE(touches.were_dear());
        EXPECT_EQ(touch(touches, again), again ? Cost::dear : Cost::unsure);
        EXPECT_EQ(touches.were_dear(), again);
        while (touch(touches, false) != Cost::cheap) {}
    }
}

// The end of the while would be 0, which stands for "never dear": it is a millisecond later.
TEST_F(Touches, TheClockMayWrap) {
    testing::set_clock(testing::before_wrap(policy::huge_pages::dear_for));
    make_dear();
    advance_clock(1);
    EXPECT_TRUE(touches.were_dear());
    advance_clock(policy::huge_pages::dear_for);
    EXPECT_TRUE(touches.were_dear());
    advance_clock(1);
    EXPECT_FALSE(touches.were_dear());
}

}  // namespace
}  // namespace numalloc
