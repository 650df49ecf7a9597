// SPDX-License-Identifier: GPL-2.0-or-later
#include "cache.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

struct Nothing {};
using Numbers = SetCache<uint32_t, Nothing>;

void take(Numbers& cache, uint32_t key) {
    if (cache.use(key) == NO_SLOT) cache.put(cache.room(key), key, {});
}

TEST(ScopeCache, KeepsAsManyAsItHasWays) {
    Numbers cache({8, 4});  // two sets
    for (uint32_t key : {0, 2, 4, 6}) take(cache, key);
    for (uint32_t key : {0, 2, 4, 6}) EXPECT_NE(cache.find(key), NO_SLOT) << key;
    EXPECT_EQ(cache.find(8), NO_SLOT);
}

TEST(ScopeCache, GivesUpTheLeastRecentlyUsed) {
    Numbers cache({4, 4});
    for (uint32_t key : {0, 1, 2, 3, 0, 2}) take(cache, key);
    take(cache, 9);
    EXPECT_EQ(cache.find(1), NO_SLOT);
    take(cache, 10);
    EXPECT_EQ(cache.find(3), NO_SLOT);
    for (uint32_t key : {0, 2, 9, 10}) EXPECT_NE(cache.find(key), NO_SLOT) << key;
}

TEST(ScopeCache, WalkLargerThanItNeverHits) {
    Numbers cache({64, 16});
    for (int pass = 0; pass < 3; ++pass)
        for (uint32_t key = 0; key < 128; ++key) {
            EXPECT_EQ(cache.use(key), NO_SLOT);
            cache.put(cache.room(key), key, {});
        }
}

TEST(ScopeCache, SetsNeedNotBeAPowerOfTwo) {
    Numbers cache({12, 4});
    for (uint32_t key = 0; key < 12; ++key) take(cache, key);
    for (uint32_t key = 0; key < 12; ++key) EXPECT_NE(cache.find(key), NO_SLOT) << key;
}

TEST(ScopeCache, EmptySlotComesBeforeAUsedOne) {
    Numbers cache({4, 4});
    for (uint32_t key : {0, 1, 2, 3}) take(cache, key);
    cache.remove(cache.find(2));
    take(cache, 7);
    for (uint32_t key : {0, 1, 3, 7}) EXPECT_NE(cache.find(key), NO_SLOT) << key;
}

TEST(ScopeL1, HitLooksAtTheLatestWayOnly) {
    L1 l1({4, 2});
    l1.put(l1.room(0), 0, true, 0);
    l1.put(l1.room(2), 2, true, 1);
    EXPECT_TRUE(l1.hit<false>(2, 1));
    EXPECT_FALSE(l1.hit<false>(0, 1));
    EXPECT_NE(l1.use(0), NO_SLOT);
    EXPECT_TRUE(l1.hit<false>(0, 1));
}

TEST(ScopeL1, StoreHitsWhatMayBeWritten) {
    L1 l1({4, 2});
    const uint32_t slot = l1.room(5);
    l1.put(slot, 5, false, 0);
    EXPECT_TRUE(l1.hit<false>(5, 1));
    EXPECT_FALSE(l1.hit<true>(5, 1));
    l1.set_writable(slot, true);
    EXPECT_TRUE(l1.hit<true>(5, 2));
    EXPECT_TRUE(l1.hit<false>(5, 4));
    const Words use = l1.take(slot);
    EXPECT_EQ(written(use), 2u);
    EXPECT_EQ(touched(use), 7u);
    EXPECT_EQ(l1.take(slot), 0u);
}

TEST(ScopeL1, NothingHitsWhatIsEmpty) {
    L1 l1({4, 2});
    for (uint64_t line = 0; line < 8; ++line) {
        EXPECT_FALSE(l1.hit<false>(line, 1));
        EXPECT_EQ(l1.use(line), NO_SLOT);
    }
}

}  // namespace
}  // namespace scope
