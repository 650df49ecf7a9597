// The mappings of others that a node's heap stepped over.
#include "heap/pages/foreign_mappings.h"

#include <gtest/gtest.h>

#include <vector>

namespace numalloc {
namespace {

constexpr std::uint32_t known = 16;

// Mapping i covers the bags 10i + 10 to 10i + 12.
BagRange mapping(std::uint32_t i) { return {BagIndex{10 * i + 10}, BagIndex{10 * i + 13}}; }

TEST(ForeignMappings, TheFirstAreKnown) {
    ForeignMappings foreign;
    EXPECT_FALSE(foreign.has(BagIndex{10}));
    for (std::uint32_t i = 0; i < known + 2; ++i) foreign.add(mapping(i));
    for (std::uint32_t i = 0; i < known + 2; ++i) {
        const BagRange range = mapping(i);
        EXPECT_FALSE(foreign.has(range.first - 1)) << i;
        for (BagIndex b = range.first; b < range.end; b = b + 1) EXPECT_EQ(foreign.has(b), i < known) << i;
        EXPECT_FALSE(foreign.has(range.end)) << i;
    }
}

TEST(ForeignMappings, ARangeEndsAtThem) {
    ForeignMappings foreign;
    const auto expect = [&](BagRange range, std::uint32_t bag, std::uint32_t first, std::uint32_t end) {
        const BagRange part = foreign.between(range, BagIndex{bag});
        EXPECT_EQ(part.first, BagIndex{first});
        EXPECT_EQ(part.end, BagIndex{end});
    };
    const BagRange all{BagIndex{1}, BagIndex{100}};
    expect(all, 50, 1, 100);
    for (std::uint32_t i = 0; i < 3; ++i) foreign.add(mapping(i));
    expect(all, 9, 1, 10);
    expect(all, 13, 13, 20);
    expect(all, 19, 13, 20);
    expect(all, 25, 23, 30);
    expect(all, 33, 33, 100);
    expect({BagIndex{14}, BagIndex{18}}, 15, 14, 18);
}

TEST(ForeignMappings, WhatIsOursIsBetweenThem) {
    ForeignMappings foreign;
    using Bounds = std::vector<std::uint32_t>;
    const auto parts = [&](std::uint32_t first, std::uint32_t end) {
        Bounds bounds;
        foreign.each_part_of_ours({BagIndex{first}, BagIndex{end}}, [&](BagRange part) {
            bounds.push_back(part.first.value);
            bounds.push_back(part.end.value);
        });
        return bounds;
    };
    EXPECT_EQ(parts(1, 100), (Bounds{1, 100}));
    EXPECT_EQ(parts(1, 1), (Bounds{}));
    for (std::uint32_t i = 0; i < 3; ++i) foreign.add(mapping(i));
    EXPECT_EQ(parts(1, 100), (Bounds{1, 10, 13, 20, 23, 30, 33, 100}));
    EXPECT_EQ(parts(1, 10), (Bounds{1, 10}));
    EXPECT_EQ(parts(10, 23), (Bounds{13, 20}));
    EXPECT_EQ(parts(15, 18), (Bounds{15, 18}));
    EXPECT_EQ(parts(50, 60), (Bounds{50, 60}));
    // Behind the last that is known there may be others.
    for (std::uint32_t i = 3; i < known; ++i) foreign.add(mapping(i));
    const BagRange last = mapping(known - 1);
    EXPECT_EQ(parts(last.first.value - 4, last.end.value + 50), (Bounds{last.first.value - 4, last.first.value}));
    EXPECT_EQ(parts(1, 15), (Bounds{1, 10, 13, 15}));
    EXPECT_EQ(parts(1, 5), (Bounds{1, 5}));
}

}  // namespace
}  // namespace numalloc
