// Which first touches of huge pages are timed, and when they make huge pages dear.
#include "heap/pages/huge_page_touches.h"

#include <gtest/gtest.h>

#include "support/made_up_clock.h"

namespace numalloc {
namespace {

using Cost = HugePageTouches::Cost;
using testing::advance_clock;

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
        for (std::uint32_t i = 1; i < policy::huge_pages::dear_in_a_row; ++i)
            ASSERT_EQ(touch(touches, true), Cost::unsure);
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
    EXPECT_TRUE(touches.take_sample());
    EXPECT_EQ(touch(touches, false), Cost::cheap);
    EXPECT_FALSE(touches.take_sample());
}

TEST_F(Touches, OnlySlowOnesInARowMakeThemDear) {
    for (std::uint32_t i = 1; i < policy::huge_pages::dear_in_a_row; ++i) EXPECT_EQ(touch(touches, true), Cost::unsure);
    EXPECT_EQ(touch(touches, false), Cost::cheap);
    EXPECT_FALSE(touches.were_dear());
    make_dear();
    EXPECT_TRUE(touches.were_dear());
}

TEST_F(Touches, TheFirstOneAfterThatWhileDecidesAlone) {
    for (const bool again : {true, false}) {
        make_dear();
        advance_clock(policy::huge_pages::dear_for);
        EXPECT_TRUE(touches.were_dear());
        advance_clock(1);
        EXPECT_FALSE(touches.were_dear());
        EXPECT_EQ(touch(touches, again), again ? Cost::dear : Cost::cheap);
        EXPECT_EQ(touches.were_dear(), again);
        EXPECT_EQ(touch(touches, false), Cost::cheap);
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
