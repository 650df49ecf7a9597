// SPDX-License-Identifier: GPL-2.0-or-later
#include "tlb.h"

#include <gtest/gtest.h>

#include <map>

#include "walker.h"

namespace scope {
namespace {

struct ScopeTlb : testing::Test {
    Counts cpu, thread, code;
    Who who{&cpu, &thread, &code};
    Tlb tlb{TlbGeometry{}};

    void walk_through(uint64_t bytes, uint64_t step, bool huge) {
        for (uint64_t at = 0; at < bytes; at += step)
            if (!tlb.hit_latest(at) && !tlb.hit(at)) tlb.miss(at, who, [&] { return Walk{huge, 1, 0}; });
    }
};

TEST_F(ScopeTlb, FirstLevelHoldsItsEntries) {
    for (int pass = 0; pass < 3; ++pass) walk_through(64 << 12, 1 << 12, false);
    EXPECT_EQ(cpu.tlb.l1_misses, 64u);
    EXPECT_EQ(cpu.tlb.l2_misses, 64u);
}

TEST_F(ScopeTlb, SecondLevelHoldsMore) {
    for (int pass = 0; pass < 3; ++pass) walk_through(1536 << 12, 1 << 12, false);
    EXPECT_EQ(cpu.tlb.l1_misses, 3 * 1536u);
    EXPECT_EQ(cpu.tlb.l2_misses, 1536u);
    EXPECT_EQ(cpu.tlb.walk_lines_local, 1536u);
}

TEST_F(ScopeTlb, BeyondBothEveryPageIsWalkedFor) {
    for (int pass = 0; pass < 2; ++pass) walk_through(16384 << 12, 1 << 12, false);
    EXPECT_EQ(cpu.tlb.l2_misses, 2 * 16384u);
}

TEST_F(ScopeTlb, HugePageIsOneEntry) {
    for (int pass = 0; pass < 2; ++pass) walk_through(64 << 20, 1 << 12, true);
    EXPECT_EQ(cpu.tlb.l2_misses, 32u);
    EXPECT_EQ(thread.tlb.l2_misses, 32u);
    EXPECT_EQ(code.tlb.l2_misses, 32u);
}

TEST_F(ScopeTlb, LatestPageOfASetIsFoundAtOnce) {
    walk_through(64 << 12, 1 << 12, false);
    EXPECT_FALSE(tlb.hit_latest(0));
    EXPECT_TRUE(tlb.hit_latest(63 << 12));
    EXPECT_TRUE(tlb.hit(0));
    EXPECT_TRUE(tlb.hit_latest(0));
    tlb.forget(0);
    EXPECT_FALSE(tlb.hit_latest(0));
}

TEST_F(ScopeTlb, ForgottenPageIsWalkedForAgain) {
    walk_through(4 << 12, 1 << 12, false);
    tlb.forget(0x2345);
    walk_through(4 << 12, 1 << 12, false);
    EXPECT_EQ(cpu.tlb.l2_misses, 5u);
}

// Tables at 0x100000 (node 0) and, of the lowest level, at 0x200000 (node 1).
struct ScopeWalker : testing::Test {
    Topology topology;
    Walker walker;
    std::map<uint64_t, uint64_t> memory;

    ScopeWalker() {
        topology.add_memory(0x100000, 0x200000, 0);
        topology.add_memory(0x200000, 0x300000, 1);
        memory[0x100000] = 0x101003;
        memory[0x101000] = 0x102003;
        memory[0x102000] = 0x200003;
        memory[0x102008] = 0x400083;
        for (uint64_t page = 0; page < 512; ++page) memory[0x200000 + 8 * page] = 0x500003;
    }
    Walk walk(uint64_t address) {
        return walker.walk(0x100000, address, 0, topology, [&](uint64_t at) { return memory[at]; });
    }
};

TEST_F(ScopeWalker, ReadsALineOfEachLevelAtFirst) {
    const Walk found = walk(0x3000);
    EXPECT_FALSE(found.huge);
    EXPECT_EQ(found.lines_local, 3u);
    EXPECT_EQ(found.lines_remote, 1u);
}

TEST_F(ScopeWalker, ThenOnlyTheLowest) {
    walk(0x3000);
    const Walk found = walk(0x4000);
    EXPECT_EQ(found.lines_local, 0u);
    EXPECT_EQ(found.lines_remote, 1u);
}

TEST_F(ScopeWalker, SeesHugePages) {
    EXPECT_TRUE(walk(0x200000).huge);
    const Walk again = walk(0x200000);
    EXPECT_EQ(again.lines_local, 1u);
    EXPECT_EQ(again.lines_remote, 0u);
}

TEST_F(ScopeWalker, StopsWhereNothingIs) {
    const Walk found = walk(uint64_t{1} << 39);
    EXPECT_FALSE(found.huge);
    EXPECT_EQ(found.lines_local, 1u);
}

}  // namespace
}  // namespace scope
