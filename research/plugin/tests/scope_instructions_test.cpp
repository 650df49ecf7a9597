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
    EXPECT_FALSE(atomic({0x48, 0x87, 0xc3}));  // xchg %rax, %rbx
    EXPECT_FALSE(atomic({0x0f, 0xc1, 0x07}));  // xadd %eax, (%rdi)
    EXPECT_FALSE(atomic({0x83, 0x07, 0xf0}));  // addl $-16, (%rdi)
    EXPECT_FALSE(atomic({0x66, 0x48, 0x90}));  // nop
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

TEST(ScopeInstructions, TaskSwitches) {
    const uint8_t save[] = {0x48, 0x89, 0xa7, 0x98, 0x1b, 0, 0}, load[] = {0x48, 0x8b, 0xa6, 0x98, 0x1b, 0, 0};
    const uint8_t elsewhere[] = {0x48, 0x8b, 0xa6, 0xa0, 0x1b, 0, 0};
    EXPECT_TRUE(is_task_switch(save, 7, load, 7));
    EXPECT_FALSE(is_task_switch(save, 7, elsewhere, 7));
    EXPECT_FALSE(is_task_switch(load, 7, save, 7));
    EXPECT_FALSE(is_task_switch(save, 0, load, 7));
}

}  // namespace
}  // namespace scope
