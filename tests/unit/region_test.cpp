// One node's part of the address space: what is committed when, and the map of dirty bags.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "heap/space/region.h"

namespace numalloc {
namespace {

class RegionTest : public ::testing::Test {
protected:
    void open(Bytes limit, const RegionPages& pages = {}) {
        ASSERT_TRUE(space_.reserve(2, limit, 64 * KiB));
        ASSERT_TRUE(region_.open(space_, 1, pages));
    }
    ~RegionTest() override {
        if (space_.regions() != 0) os::unmap(reinterpret_cast<void*>(space_.region(0)), 2 * space_.region_bytes());
    }
    char* at(std::uint64_t bag) { return static_cast<char*>(region_.address(BagIndex{bag})); }

    AddressSpace space_;
    Region region_;
};

TEST_F(RegionTest, AddressesAndBagsAreInverse) {
    open(64 * MiB);
    EXPECT_EQ(region_.start(), space_.region(1));
    for (std::uint64_t b = region_.first_bag().value; b < region_.end_bag().value; ++b) {
        EXPECT_EQ(region_.bag_of(at(b)).value, b);
        EXPECT_EQ(region_.bag_of(at(b) + bag_bytes - 1).value, b);
        EXPECT_EQ(address_of(at(b)) % bag_bytes, 0u);
    }
    EXPECT_EQ(address_of(at(region_.first_bag().value)) - region_.start(), space_.data_offset());
    EXPECT_EQ(address_of(at(region_.end_bag().value)) - region_.start(), space_.region_bytes());
}

TEST_F(RegionTest, GrowthIsUsableZeroAndBounded) {
    open(256 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    EXPECT_EQ(region_.committed(), first);
    EXPECT_TRUE(region_.grow(first));  // nothing to do
    EXPECT_EQ(region_.committed(), first);
    ASSERT_TRUE(region_.grow(first + 1));
    const std::uint64_t step = region_.committed();
    EXPECT_GT(step, first);
    // A small heap is not charged for a large one.
    EXPECT_LE((step - first) * bag_bytes, 4 * MiB);
    EXPECT_TRUE(region_.grow(step));
    EXPECT_EQ(region_.committed(), step);
    EXPECT_FALSE(region_.grow(std::uint64_t{region_.end_bag().value} + 1));

    ASSERT_TRUE(region_.grow(region_.end_bag().value));
    EXPECT_EQ(region_.committed(), region_.end_bag().value);
    for (std::uint64_t b = first; b < region_.end_bag().value; b += 13) {
        EXPECT_EQ(at(b)[0], 0);
        at(b)[bag_bytes - 1] = 1;
        Bag& entry = region_.bag(BagIndex{b});
        EXPECT_EQ(entry.run, 0u);
        EXPECT_EQ(entry.state, BagState::inside);
        entry.run = 5;
    }
}

TEST_F(RegionTest, StepsBecomeLargerWithTheHeap) {
    open(8 * GiB);
    const std::uint64_t first = region_.first_bag().value;
    unsigned calls = 0;
    while (region_.committed() < first + (1 * GiB >> bag_shift)) {
        ASSERT_TRUE(region_.grow(region_.committed() + 1));
        ++calls;
    }
    EXPECT_LT(calls, 80u);
}

TEST_F(RegionTest, OutsideOfWhatIsCommittedNothingCanBeTouched) {
    open(256 * MiB);
    ASSERT_TRUE(region_.grow(std::uint64_t{region_.first_bag().value} + 1));
    EXPECT_DEATH(*static_cast<volatile char*>(at(region_.committed())) = 1, "");
}

// With fast frees, free() may read the byte of any pointer: guards and the whole map read as 0.
TEST_F(RegionTest, GuardsAndClassMapMayBeReadFromTheStart) {
    open(8 * GiB);
    ASSERT_TRUE(space_.fast_frees());
    const auto* start = reinterpret_cast<const std::uint8_t*>(region_.start());
    for (Bytes offset = 0; offset < space_.thread_heaps_offset(); offset += 1 * MiB - 1) EXPECT_EQ(start[offset], 0);
    EXPECT_EQ(start[space_.thread_heaps_offset() - 1], 0);
    EXPECT_EQ(region_.class_at(region_.end_bag()), no_class);
}

TEST_F(RegionTest, ClassesAreWhereTheyWereSet) {
    open(64 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    ASSERT_TRUE(region_.grow(first + 32));
    region_.set_class(BagIndex{first + 3}, 5, ClassId{77});
    for (std::uint64_t i = 0; i < 16; ++i)
        EXPECT_EQ(region_.class_at(BagIndex{first + i}), i >= 3 && i < 8 ? ClassId{77} : no_class) << i;
    region_.set_class(BagIndex{first + 3}, 5, no_class);
    for (std::uint64_t i = 0; i < 16; ++i) EXPECT_EQ(region_.class_at(BagIndex{first + i}), no_class) << i;
}

TEST_F(RegionTest, DirtyMapAgreesWithAVector) {
    open(64 * MiB);
    ASSERT_TRUE(region_.grow(region_.end_bag().value));
    const std::uint64_t first = region_.first_bag().value;
    const std::uint64_t bags = region_.end_bag().value - first;
    std::vector<bool> model(bags, false);
    std::mt19937 random(5);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t from = random() % bags;
        const std::uint64_t n = 1 + random() % (i % 2 == 0 ? 5 : bags - from);
        const std::uint64_t length = std::min(n, bags - from);
        const bool dirty = random() % 2 == 0;
        region_.set_dirty(BagIndex{first + from}, length, dirty);
        for (std::uint64_t b = 0; b < length; ++b) model[from + b] = dirty;

        const std::uint64_t from2 = random() % bags;
        const std::uint64_t length2 = random() % (bags - from2 + 1);
        const auto expected = std::count(model.begin() + long(from2), model.begin() + long(from2 + length2), true);
        ASSERT_EQ(region_.count_dirty(BagIndex{first + from2}, length2), expected);
    }
}

TEST_F(RegionTest, ThreadHeapsGrowToTheirCapacityAndNoFurther) {
    open(64 * MiB);
    auto* heaps = reinterpret_cast<char*>(region_.thread_heaps());
    ASSERT_TRUE(region_.grow_thread_heaps(100));
    heaps[99] = 1;
    ASSERT_TRUE(region_.grow_thread_heaps(region_.thread_heaps_capacity()));
    heaps[region_.thread_heaps_capacity() - 1] = 1;
    EXPECT_FALSE(region_.grow_thread_heaps(region_.thread_heaps_capacity() + 1));
    EXPECT_EQ(heaps[99], 1);
}

TEST_F(RegionTest, TheFirstMegabytesStayOnNormalPages) {
    open(64 * MiB);
    EXPECT_EQ(Bytes{region_.huge_from().value - region_.first_bag().value} * bag_bytes, normal_pages_first);
    EXPECT_EQ(address_of(at(region_.huge_from().value)) % os::huge_page, 0u);
}

}  // namespace
}  // namespace numalloc
