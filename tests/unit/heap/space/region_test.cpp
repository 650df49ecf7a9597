// One node's part of the address space: what is committed when, and the map of dirty bags.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "heap/space/region.h"

namespace numalloc {
namespace {

// Pages of address space that the process has mapped.
unsigned long mapped_pages() {
    unsigned long pages = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(std::fscanf(file, "%lu", &pages), 1);
    std::fclose(file);
    return pages;
}

class RegionTest : public ::testing::Test {
protected:
    void open(Bytes bags, const RegionPages& pages = {}, Bytes reserve = 0) {
        ASSERT_TRUE(space_.choose(2, 64 * KiB,
                                  {.stride = smallest_stride, .bags = bags, .reserve = reserve, .held = reserve == 0}));
        ASSERT_TRUE(region_.open(space_, 1, pages));
    }
    ~RegionTest() override {
        if (space_.regions() != 0)
            os::unmap(reinterpret_cast<void*>(space_.region(0)), space_.stride() + space_.end_offset());
    }
    // The two steps of each change, as their owner takes them.
    bool grow(std::uint64_t up_to) {
        if (up_to <= region_.committed()) return true;
        const std::uint64_t end = region_.map_up_to(up_to);
        if (end != 0) region_.set_committed(end);
        return end != 0;
    }
    std::uint32_t step_over(std::uint64_t bags) {
        const Region::Stretch beyond = region_.map_beyond(bags);
        if (beyond.first != beyond.end) region_.set_committed(beyond.end);
        return static_cast<std::uint32_t>(beyond.first);
    }
    std::uint64_t shrink(std::uint64_t from) {
        const std::uint64_t to = region_.committed();
        region_.set_committed(region_.trimmed(from));
        region_.set_committed(region_.unmap(region_.committed(), to));
        return region_.committed();
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
    EXPECT_EQ(address_of(at(region_.end_bag().value)) - region_.start(), space_.end_offset());
    EXPECT_EQ(Bytes{region_.end_bag().value - region_.first_bag().value} * bag_bytes, 64 * MiB);
}

TEST_F(RegionTest, GrowthIsUsableZeroAndBounded) {
    open(256 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    EXPECT_EQ(region_.committed(), first);
    EXPECT_TRUE(grow(first));  // nothing to do
    EXPECT_EQ(region_.committed(), first);
    ASSERT_TRUE(grow(first + 1));
    const std::uint64_t step = region_.committed();
    EXPECT_GT(step, first);
    // A small heap is not charged for a large one.
    EXPECT_LE((step - first) * bag_bytes, 4 * MiB);
    EXPECT_TRUE(grow(step));
    EXPECT_EQ(region_.committed(), step);
    EXPECT_FALSE(grow(std::uint64_t{region_.end_bag().value} + 1));

    ASSERT_TRUE(grow(region_.end_bag().value));
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
    open(2 * GiB);
    const std::uint64_t first = region_.first_bag().value;
    unsigned calls = 0;
    while (region_.committed() < first + (1 * GiB >> bag_shift)) {
        ASSERT_TRUE(grow(region_.committed() + 1));
        ++calls;
    }
    EXPECT_LT(calls, 160u);
}

TEST_F(RegionTest, OutsideOfWhatIsCommittedNothingCanBeTouched) {
    open(256 * MiB);
    ASSERT_TRUE(grow(std::uint64_t{region_.first_bag().value} + 1));
    EXPECT_DEATH(*static_cast<volatile char*>(at(region_.committed())) = 1, "");
}

// free() may read the byte of any address of the region's start, and of some behind its bags.
TEST_F(RegionTest, TheClassMapMayBeReadAheadOfTheBags) {
    open(64 * MiB);
    for (std::uint64_t b = 0; b < region_.end_bag().value + (1 * GiB >> bag_shift); ++b)
        ASSERT_EQ(region_.class_at(BagIndex{b}), no_class);
}

// Of the metadata's parts the first ones are mapped, and then there is no more: the next try finds the addresses free.
TEST_F(RegionTest, AnOpeningThatFailedHalfWayIsTriedAgain) {
    ASSERT_TRUE(space_.choose(2, 64 * KiB, {.stride = smallest_stride, .bags = 64 * MiB}));
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    const unsigned long at_first = mapped_pages();
    unsigned failed = 0;
    for (bool opened = false; !opened && failed < 1000; failed += !opened) {
        ASSERT_EQ(mapped_pages(), at_first) << "after " << failed;
        const rlimit little{(at_first + failed) * os::page_size(), limit.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
        opened = region_.open(space_, 1, {});
        ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    }
    EXPECT_GT(failed, 2u);
    EXPECT_LT(failed, 1000u);
    EXPECT_TRUE(grow(region_.first_bag().value + 1));
}

TEST_F(RegionTest, WhatLiesInTheWayIsSteppedOver) {
    open(256 * MiB, {}, os::huge_page);  // held as far as that, and free behind it
    const std::uint64_t first = region_.first_bag().value;
    ASSERT_TRUE(grow(first + (os::huge_page >> bag_shift)));
    const std::uint64_t old_end = region_.committed();
    EXPECT_EQ(step_over(1), no_bag.value);  // nothing is in the way yet
    const Bytes obstacle = 9 * MiB;
    ASSERT_EQ(os::map_at(at(old_end), obstacle), os::Mapped::done);
    std::memset(at(old_end), 7, obstacle);
    EXPECT_FALSE(grow(old_end + 1));
    EXPECT_EQ(region_.committed(), old_end);
    const std::uint32_t beyond = step_over(40);
    ASSERT_NE(beyond, no_bag.value);
    EXPECT_GE(beyond, old_end + (obstacle >> bag_shift));
    EXPECT_LE(beyond, old_end + (2 * obstacle >> bag_shift));
    EXPECT_GE(region_.committed(), beyond + 40u);
    std::memset(at(beyond), 1, 40 * bag_bytes);
    region_.bag(BagIndex{beyond + 39}).run = 1;
    EXPECT_EQ(at(old_end)[obstacle - 1], 7);
    EXPECT_TRUE(grow(region_.committed() + 1));
}

// A heap that cannot step over what lies in the way has no metadata for all of its bags.
TEST_F(RegionTest, WhereEverythingBehindIsTakenLittleStays) {
    ASSERT_TRUE(space_.choose(2, 64 * KiB, {.stride = 4 * TiB, .bags = TiB, .reserve = os::huge_page}));
    ASSERT_TRUE(region_.open(space_, 1, {}));
    ASSERT_TRUE(grow(region_.first_bag().value + (os::huge_page >> bag_shift)));
    const std::uint64_t end = region_.committed();
    ASSERT_TRUE(os::hold_at(at(end), (region_.end_bag().value - end) << bag_shift));
    const std::size_t before = mapped_pages();
    EXPECT_FALSE(grow(end + 1));
    EXPECT_EQ(step_over(40), no_bag.value);
    EXPECT_LT((mapped_pages() - before) * os::page_size(), 32 * MiB);
}

TEST_F(RegionTest, WhatIsShrunkIsNoLongerThereAndComesBackZero) {
    open(256 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    ASSERT_TRUE(grow(first + 1000));
    std::memset(at(first), 1, 1000 * bag_bytes);
    const std::uint64_t end = shrink(first + 100);
    EXPECT_GE(end, first + 100);
    EXPECT_LE(end, first + 100 + (2 * MiB >> bag_shift));
    EXPECT_EQ(region_.committed(), end);
    EXPECT_DEATH(*static_cast<volatile char*>(at(end)) = 1, "");
    EXPECT_EQ(at(end)[-1], 1);
    ASSERT_TRUE(grow(first + 1000));
    for (std::uint64_t b = end; b < first + 1000; ++b) ASSERT_EQ(at(b)[0], 0);
}

TEST_F(RegionTest, TheReserveIsHeldAndNoEnd) {
    open(256 * MiB, {}, 32 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    EXPECT_FALSE(os::is_free(at(first + (31 * MiB >> bag_shift)), os::huge_page / 2));
    EXPECT_TRUE(os::is_free(at(first + (32 * MiB >> bag_shift)), os::huge_page));
    ASSERT_TRUE(grow(first + (100 * MiB >> bag_shift)));
    std::memset(at(first), 1, 100 * MiB);
}

TEST_F(RegionTest, ClassesAreWhereTheyWereSet) {
    open(64 * MiB);
    const std::uint64_t first = region_.first_bag().value;
    ASSERT_TRUE(grow(first + 32));
    region_.set_class(BagIndex{first + 3}, 5, ClassId{77});
    for (std::uint64_t i = 0; i < 16; ++i)
        EXPECT_EQ(region_.class_at(BagIndex{first + i}), i >= 3 && i < 8 ? ClassId{77} : no_class) << i;
    region_.set_class(BagIndex{first + 3}, 5, no_class);
    for (std::uint64_t i = 0; i < 16; ++i) EXPECT_EQ(region_.class_at(BagIndex{first + i}), no_class) << i;
}

TEST_F(RegionTest, DirtyMapAgreesWithAVector) {
    open(64 * MiB);
    ASSERT_TRUE(grow(region_.end_bag().value));
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
    EXPECT_EQ(Bytes{region_.huge_from().value - region_.first_bag().value} * bag_bytes,
              policy::huge_pages::normal_first);
    EXPECT_EQ(address_of(at(region_.huge_from().value)) % os::huge_page, 0u);
}

}  // namespace
}  // namespace numalloc
