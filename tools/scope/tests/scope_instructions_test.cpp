// SPDX-License-Identifier: GPL-2.0-or-later
#include "instructions.h"

#include <gtest/gtest.h>

#include <vector>

namespace scope {
namespace {

bool atomic(std::vector<uint8_t> code) { return is_atomic(code.data(), code.size()); }

TEST(ScopeInstructions, LockedOnesAndExchangesWithMemoryAreAtomic) {
    EXPECT_TRUE(atomic({0xf0, 0x0f, 0xc1, 0x07}));        // lock xadd %eax, (%rdi)
    EXPECT_TRUE(atomic({0x66, 0xf0, 0x0f, 0xb1, 0x0f}));  // lock cmpxchg %cx, (%rdi)
    EXPECT_TRUE(atomic({0x87, 0x07}));                    // xchg %eax, (%rdi)
    EXPECT_TRUE(atomic({0x48, 0x87, 0x47, 0x08}));        // xchg %rax, 8(%rdi)
    EXPECT_TRUE(atomic({0x86, 0x07}));                    // xchg %al, (%rdi)
}

TEST(ScopeInstructions, OthersAreNot) {
    EXPECT_FALSE(atomic({0x48, 0x87, 0xc3}));        // xchg %rax, %rbx
    EXPECT_FALSE(atomic({0x0f, 0xc1, 0x07}));        // xadd %eax, (%rdi)
    EXPECT_FALSE(atomic({0x83, 0x07, 0xf0}));        // addl $-16, (%rdi)
    EXPECT_FALSE(atomic({0x66, 0x48, 0x90}));        // nop
    EXPECT_FALSE(atomic({0x66}));
}

TEST(ScopeInstructions, Returns) {
    const auto returns = [](std::vector<uint8_t> code) { return is_return(code.data(), code.size()); };
    EXPECT_TRUE(returns({0xc3}));
    EXPECT_TRUE(returns({0xf3, 0xc3}));
    EXPECT_TRUE(returns({0xc2, 0x08, 0x00}));
    EXPECT_FALSE(returns({0xf3, 0x90}));
    EXPECT_FALSE(returns({0x48, 0xc3}));
    EXPECT_FALSE(returns({0x0f, 0xc3, 0x07}));
}

}  // namespace
}  // namespace scope
