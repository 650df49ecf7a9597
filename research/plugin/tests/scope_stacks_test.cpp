// SPDX-License-Identifier: GPL-2.0-or-later
#include "stacks.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

TEST(ScopeStacks, SamplesAreEvenOverAllLines) {
    StackSamples samples;
    const uint64_t lines = 100'000;
    for (uint64_t line = 0; line < lines; ++line)
        if (samples.next()) samples.add({line, false, {}, {}});
    EXPECT_LT(samples.all().size(), StackSamples::MOST);
    EXPECT_EQ(samples.every(), 128u);
    ASSERT_EQ(samples.all().size(), (lines + 127) / 128);
    for (size_t i = 0; i < samples.all().size(); ++i) EXPECT_EQ(samples.all()[i].address, 128 * i);
    samples.clear();
    EXPECT_TRUE(samples.all().empty());
    EXPECT_EQ(samples.every(), 1u);
    EXPECT_TRUE(samples.next());
}

}  // namespace
}  // namespace scope
