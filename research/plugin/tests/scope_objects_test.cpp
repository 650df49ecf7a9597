// SPDX-License-Identifier: GPL-2.0-or-later
#include "objects.h"

#include <gtest/gtest.h>

namespace scope {
namespace {

TEST(ScopeObjects, AnAddressIsInTheObjectAroundIt) {
    Objects objects;
    objects.add(0x10010, 24, 3);
    for (const uint64_t inside : {0x10010, 0x10018, 0x10027}) {
        const Object found = objects.at(inside);
        EXPECT_EQ(found.start, 0x10010u);
        EXPECT_EQ(found.size, 24u);
        EXPECT_EQ(found.thread, 3u);
        EXPECT_FALSE(found.freed);
    }
    EXPECT_FALSE(objects.holds(0x1000f));
    EXPECT_FALSE(objects.holds(0x10028));  // behind what was asked for
    EXPECT_FALSE(objects.holds(0));
}

TEST(ScopeObjects, ObjectsReachOverTheEndOfAPage) {
    Objects objects;
    objects.add(0x10f00, 4096, 1);
    EXPECT_EQ(objects.at(0x11eff).start, 0x10f00u);
    EXPECT_FALSE(objects.holds(0x11f00));
    objects.add(0x11f00, 16, 1);
    EXPECT_EQ(objects.at(0x11e00).start, 0x10f00u);
    EXPECT_EQ(objects.at(0x11f00).start, 0x11f00u);
}

TEST(ScopeObjects, TheNewestIsTheOne) {
    Objects objects;
    objects.add(0x1000, 100, 1);
    objects.add(0x1020, 8, 2);  // the older one is gone, whose memory it is in
    EXPECT_EQ(objects.at(0x1020).thread, 2u);
    EXPECT_FALSE(objects.holds(0x1000));
    objects.add(0x1000, 64, 3);  // and this one takes the place of it
    EXPECT_EQ(objects.at(0x1020).thread, 3u);
    EXPECT_EQ(objects.at(0x103f).size, 64u);
}

TEST(ScopeObjects, AFreedSmallOneStaysAndALargeOneGoes) {
    Objects objects;
    objects.add(0x1000, 100, 1);
    objects.add(0x100000, 1 << 20, 2);
    objects.free(0x1010);  // where none begins
    EXPECT_FALSE(objects.at(0x1000).freed);
    objects.free(0x1000);
    EXPECT_TRUE(objects.at(0x1000).freed);
    EXPECT_TRUE(objects.holds(0x1fffff));
    objects.free(0x100000);
    EXPECT_FALSE(objects.holds(0x1fffff));
    objects.add(0x1000, 100, 1);
    EXPECT_FALSE(objects.at(0x1000).freed);
}

TEST(ScopeObjects, LargeAndSmallTakeEachOthersPlace) {
    Objects objects;
    for (uint64_t at = 0x100000; at < 0x110000; at += 64) objects.add(at, 64, 1);
    objects.add(0x101000, 0x8000, 2);
    EXPECT_EQ(objects.at(0x100fff).thread, 1u);
    EXPECT_EQ(objects.at(0x101000).thread, 2u);
    EXPECT_EQ(objects.at(0x108fff).size, 0x8000u);
    EXPECT_EQ(objects.at(0x109000).thread, 1u);
    objects.add(0x104000, 16, 3);
    EXPECT_EQ(objects.at(0x104000).thread, 3u);
    EXPECT_FALSE(objects.holds(0x101000));
    objects.add(0x103000, 0x4000, 4);
    objects.add(0x102000, 0x2000, 5);  // into the large one's beginning
    EXPECT_EQ(objects.at(0x103fff).thread, 5u);
    EXPECT_FALSE(objects.holds(0x105000));
}

TEST(ScopeObjects, NothingIsAnObjectOfNoByte) {
    Objects objects;
    objects.add(0x1000, 0, 1);
    EXPECT_TRUE(objects.holds(0x1000));
    objects.add(0, 100, 1);  // malloc failed
    EXPECT_FALSE(objects.holds(8));
    objects.clear();
    EXPECT_FALSE(objects.holds(0x1000));
}

TEST(ScopeObjects, ItsMemoryHasABound) {
    Objects objects;
    for (uint64_t page = 1; page <= Objects::MOST_PAGES + 10; ++page) objects.add(page << 12, 16, 1);
    EXPECT_EQ(objects.pages(), Objects::MOST_PAGES);
    EXPECT_FALSE(objects.holds(10 << 12));
    EXPECT_TRUE(objects.holds(11 << 12));
    EXPECT_TRUE(objects.holds((Objects::MOST_PAGES + 10) << 12));
}

}  // namespace
}  // namespace scope
