// SPDX-License-Identifier: GPL-2.0-or-later
#include "calls.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

uint64_t size_of(Function function) { return call_of(function, 0, 2, 30, 400).size; }

TEST(ScopeCalls, TheSizeIsWhereTheFunctionHasIt) {
    EXPECT_EQ(size_of(Function::MALLOC), 2u);
    EXPECT_EQ(size_of(Function::CALLOC), 60u);
    EXPECT_EQ(size_of(Function::REALLOC), 30u);
    EXPECT_EQ(size_of(Function::REALLOCARRAY), 12000u);
    EXPECT_EQ(size_of(Function::ALIGNED), 30u);
    EXPECT_EQ(size_of(Function::POSIX), 400u);
    EXPECT_EQ(call_of(Function::POSIX, 0, 2, 30, 400).result, 2u);
    EXPECT_EQ(call_of(Function::REALLOC, 0, 2, 30, 400).before, 2u);
    EXPECT_EQ(call_of(Function::CALLOC, 0, 2, 30, 400).before, 0u);
}

TEST(ScopeCalls, InnermostEndsFirst) {
    Calls calls;
    EXPECT_EQ(calls.awaited(), 0u);
    calls.begin({0x1000, 1, 0, 0});
    calls.begin({0xf00, 2, 0, 0});
    EXPECT_EQ(calls.awaited(), 0xf00u);
    EXPECT_EQ(calls.end().size, 2u);
    EXPECT_EQ(calls.awaited(), 0x1000u);
    EXPECT_EQ(calls.end().size, 1u);
    EXPECT_EQ(calls.awaited(), 0u);
}

TEST(ScopeCalls, ACallThatWasLeftByAnExceptionIsForgotten) {
    Calls calls;
    calls.begin({0x1000, 1, 0, 0});
    calls.begin({0xf00, 2, 0, 0});
    calls.begin({0x1100, 3, 0, 0});
    EXPECT_EQ(calls.end().size, 3u);
    EXPECT_EQ(calls.awaited(), 0u);
}

TEST(ScopeCalls, AFunctionThatJumpsToAnotherIsOneCall) {
    Calls calls;
    calls.begin({0x1000, 1, 0, 0});
    calls.begin({0x1000, 2, 0, 0});
    EXPECT_EQ(calls.end().size, 2u);
    EXPECT_EQ(calls.awaited(), 0u);
}

}  // namespace
}  // namespace scope
