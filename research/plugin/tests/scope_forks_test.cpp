// SPDX-License-Identifier: GPL-2.0-or-later
#include "forks.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

TEST(ScopeForks, AChildBeginsWhereItsParentAsked) {
    Forks forks;
    forks.begin(0x1002, 7);
    forks.see(100, 0x1004, 7, 0);  // elsewhere
    forks.see(100, 0x1002, 8, 0);  // of another thread
    forks.see(100, 0x1002, 7, 5);  // the result is a parent's
    EXPECT_FALSE(forks.is_child(100));
    forks.see(100, 0x1002, 7, 0);
    EXPECT_TRUE(forks.is_child(100));
    forks.see(101, 0x1002, 7, 0);  // it asked for one
    EXPECT_FALSE(forks.is_child(101));
    forks.end(100);
    EXPECT_FALSE(forks.is_child(100));
}

TEST(ScopeForks, ThoseThatFailedAreForgotten) {
    Forks forks;
    for (uint64_t address = 1; address <= 65; ++address) forks.begin(address, 7);
    forks.see(100, 1, 7, 0);
    EXPECT_FALSE(forks.is_child(100));
    forks.see(100, 2, 7, 0);
    EXPECT_TRUE(forks.is_child(100));
    forks.clear();
    EXPECT_FALSE(forks.is_child(100));
}

}  // namespace
}  // namespace scope
