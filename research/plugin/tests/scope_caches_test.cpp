// SPDX-License-Identifier: GPL-2.0-or-later
#include "caches.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

// Two nodes of two CPUs; CPUs 0 and 1 share a last level, 2 and 3 have one each. A megabyte a node.
struct ScopeCaches : testing::Test {
    Topology topology = made_up();
    CacheGeometry geometry{{8, 2}, {16, 4}, {64, 4}};
    Objects objects;
    Caches caches{topology, geometry, objects};
    Counts cpus[4], thread, code;
    static constexpr uint32_t OF_NODE_1 = (1 << 20) / 64;

    static Topology made_up() {
        Topology topology;
        topology.nodes = 2;
        topology.node_of_cpu = {0, 0, 1, 1};
        topology.llc_of_cpu = {0, 0, 1, 2};
        topology.finish();
        topology.add_memory(0, 1 << 20, 0);
        topology.add_memory(1 << 20, 2 << 20, 1);
        return topology;
    }

    void access(unsigned cpu, uint32_t line, bool store, Words words = 1) {
        L1& l1 = caches.l1(cpu);
        if (store ? l1.hit<true>(line, words) : l1.hit<false>(line, words)) return;
        caches.access(cpu, line, words, store, {&cpus[cpu], &thread, &code}, [&] { return line; });
    }
    void load(unsigned cpu, uint32_t line, Words words = 1) { access(cpu, line, false, words); }
    void store(unsigned cpu, uint32_t line, Words words = 1) { access(cpu, line, true, words); }
};

TEST_F(ScopeCaches, FirstTouchIsAColdFillFromItsHome) {
    load(0, 1);
    load(0, OF_NODE_1);
    load(2, 2);
    EXPECT_EQ(cpus[0].fills[0], 1u);
    EXPECT_EQ(cpus[0].fills[1], 1u);
    EXPECT_EQ(cpus[2].fills[0], 1u);
    EXPECT_EQ(code.causes.cold, 3u);
    EXPECT_EQ(thread.l1_misses, 3u);
}

TEST_F(ScopeCaches, SecondTouchHits) {
    for (int i = 0; i < 5; ++i) load(0, 1), store(0, 1);
    EXPECT_EQ(code.l1_misses, 1u);
    EXPECT_EQ(code.causes.upgrade, 0u);  // it was the only one to have it
}

TEST_F(ScopeCaches, WhatTheFirstLevelLostIsInTheSecond) {
    for (uint32_t line : {0, 4, 8, 0}) load(0, line);  // a set of two
    EXPECT_EQ(code.l1_misses, 4u);
    EXPECT_EQ(code.l2_misses, 3u);
}

TEST_F(ScopeCaches, WhatTheSecondLostIsInTheLast) {
    for (uint32_t line : {0, 4, 8, 12, 16, 0}) load(0, line);
    EXPECT_EQ(code.llc_hits, 1u);
    EXPECT_EQ(code.fills[0], 5u);
    EXPECT_EQ(code.causes.capacity, 1u);
}

TEST_F(ScopeCaches, NeighbourFindsItInTheSharedLevel) {
    for (uint32_t line : {0, 4, 8, 12, 16}) load(0, line);  // 0 is in the last level only
    load(1, 0);
    EXPECT_EQ(cpus[1].llc_hits, 1u);
    EXPECT_EQ(cpus[1].fills[0], 0u);
}

TEST_F(ScopeCaches, DirtyLinesAreWrittenBackToTheirHome) {
    store(0, OF_NODE_1);
    for (uint32_t i = 1; i <= 16; ++i) load(0, OF_NODE_1 + 16 * i);  // one set in each level
    EXPECT_EQ(cpus[0].writebacks[1], 1u);
    EXPECT_EQ(cpus[0].writebacks[0], 0u);
    load(0, OF_NODE_1);
    EXPECT_EQ(code.causes.capacity, 1u);
    EXPECT_EQ(cpus[0].fills[1], 18u);
}

TEST_F(ScopeCaches, WrittenLineComesFromItsWriter) {
    store(0, 1);
    load(3, 1);
    EXPECT_EQ(cpus[3].transfers[0], 1u);
    EXPECT_EQ(cpus[3].fills[0], 0u);
    store(2, 2);
    load(3, 2);
    EXPECT_EQ(cpus[3].transfers[1], 1u);
}

TEST_F(ScopeCaches, SharedLineComesFromTheNearest) {
    load(0, 1);
    load(2, 1);  // from node 0
    load(3, 1);  // from node 1 now
    EXPECT_EQ(cpus[2].transfers[0], 1u);
    EXPECT_EQ(cpus[3].transfers[1], 1u);
}

TEST_F(ScopeCaches, WritingASharedLineIsAnUpgrade) {
    load(0, 1);
    load(2, 1);
    store(0, 1);
    EXPECT_EQ(cpus[0].causes.upgrade, 1u);
    EXPECT_EQ(cpus[0].l1_misses, 1u);
    load(2, 1);
    EXPECT_EQ(cpus[2].transfers[0], 2u);
}

TEST_F(ScopeCaches, SameWordIsTrueSharing) {
    for (int i = 0; i < 10; ++i) store(0, 1, 1), store(2, 1, 1);
    caches.settle();
    EXPECT_EQ(code.causes.true_sharing, 19u);
    EXPECT_EQ(code.causes.false_sharing, 0u);
    EXPECT_EQ(code.causes.cold, 1u);
}

TEST_F(ScopeCaches, OtherWordIsFalseSharing) {
    for (int i = 0; i < 10; ++i) store(0, 1, 1), store(2, 1, 0x10);
    caches.settle();
    EXPECT_EQ(code.causes.false_sharing, 19u);
    EXPECT_EQ(code.causes.true_sharing, 0u);
    ASSERT_EQ(caches.false_sharing().size(), 1u);
    const FalseSharing& found = caches.false_sharing().begin()->second;
    EXPECT_EQ(found.times, 19u);
    EXPECT_EQ(found.nodes, 3u);
    EXPECT_EQ(found.line, 64u);
    EXPECT_EQ(found.first + found.second, 16u);
}

TEST_F(ScopeCaches, FalseSharingKnowsTheObjectsOfBothAddresses) {
    objects.add(72, 24, 5);
    for (int i = 0; i < 2; ++i) store(0, 1, 1), store(2, 1, 0x10);
    caches.settle();
    const FalseSharing& found = caches.false_sharing().begin()->second;
    const unsigned second = found.second == 16;
    EXPECT_EQ(found.objects[second].start, 72u);
    EXPECT_EQ(found.objects[second].thread, 5u);
    EXPECT_EQ(found.objects[!second].size, 0u);
}

TEST_F(ScopeCaches, WhatIsTouchedLaterDecides) {
    store(0, 1, 1);
    store(2, 1, 2);
    load(0, 1, 1);  // its own word ...
    load(0, 1, 2);  // ... and then what the other one wrote
    caches.settle();
    EXPECT_EQ(cpus[0].causes.true_sharing, 1u);
}

TEST_F(ScopeCaches, WritesOfAThirdAreRememberedOverEviction) {
    load(0, 0, 1);
    store(2, 0, 2);                                        // 0 loses it
    for (uint32_t line : {16, 32, 48, 64}) load(2, line);  // 2 gives it up
    load(0, 0, 2);
    caches.settle();
    EXPECT_EQ(cpus[0].causes.true_sharing, 1u);
}

TEST_F(ScopeCaches, EveryMissHasOneCause) {
    uint32_t random = 1;
    for (int i = 0; i < 20000; ++i) {
        random = random * 1664525 + 1013904223;
        access(random >> 28 & 3, random >> 20 & 63, random >> 18 & 1, 1u << (random >> 14 & 15));
    }
    caches.settle();
    const auto& causes = code.causes;
    EXPECT_EQ(causes.cold + causes.capacity + causes.true_sharing + causes.false_sharing, code.l2_misses);
    EXPECT_EQ(code.llc_hits + code.fills[0] + code.transfers[0] + code.transfers[1], code.l2_misses);
    uint64_t by_cpu = 0;
    for (const Counts& counts : cpus) by_cpu += counts.l2_misses;
    EXPECT_EQ(by_cpu, code.l2_misses);
}

TEST_F(ScopeCaches, ForgottenPageIsLookedForAgain) {
    load(0, 1);
    caches.forget_page(0, 0x10);
    load(0, 1);
    EXPECT_EQ(code.l1_misses, 2u);
    EXPECT_EQ(code.l2_misses, 1u);
}

TEST_F(ScopeCaches, AnotherProcessFindsTheLinesInTheSecondLevel) {
    load(0, 1), store(0, 2);
    caches.forget_all(0);
    load(0, 1), load(0, 2);
    EXPECT_EQ(code.l1_misses, 4u);
    EXPECT_EQ(code.l2_misses, 2u);
}

TEST_F(ScopeCaches, ClearedCachesAreCold) {
    store(0, 1);
    caches.clear();
    load(2, 1);
    EXPECT_EQ(cpus[2].fills[0], 1u);
    EXPECT_EQ(cpus[2].causes.cold, 1u);
}

}  // namespace
}  // namespace scope
