// The layout of the reserve, and the equation by which free() finds the byte of a bag.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "heap/space/region.h"

namespace numalloc {
namespace {

constexpr Bytes node_heap = 64 * KiB;

class AddressSpaceTest : public ::testing::Test {
protected:
    AddressSpace& reserve(unsigned regions, Bytes limit) {
        auto& space = spaces_.emplace_back();
        EXPECT_TRUE(space.reserve(regions, limit, node_heap)) << regions << " regions of " << limit;
        return space;
    }
    ~AddressSpaceTest() override {
        for (const AddressSpace& space : spaces_)
            os::unmap(reinterpret_cast<void*>(space.region(0)), space.region_bytes() * space.regions());
    }

private:
    std::vector<AddressSpace> spaces_;
};

void check_layout(const AddressSpace& space) {
    EXPECT_EQ(space.region(0) % os::huge_page, 0u);
    EXPECT_EQ(space.data_offset() % os::huge_page, 0u);
    EXPECT_EQ(space.region_bytes() % os::huge_page, 0u);
    const Bytes bags = space.region_bytes() >> bag_shift;
    // One after the other, each with room for what it holds.
    EXPECT_GE(space.thread_heaps_offset(), space.class_map_offset() + bags);
    EXPECT_GT(space.bag_marks_offset(), space.thread_heaps_offset());
    EXPECT_GE(space.bag_table_offset(), space.bag_marks_offset() + bag_marks_bytes(bags));
    EXPECT_GE(space.node_heap_offset(), space.bag_table_offset() + bags * sizeof(Bag));
    EXPECT_GE(space.data_offset(), space.node_heap_offset() + node_heap);
    EXPECT_LT(space.data_offset(), space.region_bytes());
    for (const Bytes offset : {space.class_map_offset(), space.thread_heaps_offset(), space.bag_marks_offset(),
                               space.bag_table_offset(), space.node_heap_offset()})
        EXPECT_EQ(offset % (4 * KiB), 0u);
    // An eighth of a region may be metadata, not more, where regions are not tiny.
    if (space.region_bytes() >= 64 * GiB) { EXPECT_LE(space.data_offset() * 8, space.region_bytes()); }

    for (unsigned r = 0; r < space.regions(); ++r) {
        const auto at = [&](Bytes offset) { return reinterpret_cast<const void*>(space.region(r) + offset); };
        EXPECT_EQ(space.region_of(at(0)), r);
        EXPECT_EQ(space.region_of(at(space.region_bytes() - 1)), r);
        EXPECT_TRUE(space.contains(at(0)));
        EXPECT_TRUE(space.contains(at(space.region_bytes() - 1)));
    }
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.region(0) - 1)));
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.region(0) + space.region_bytes() * space.regions())));
    EXPECT_FALSE(space.contains(nullptr));
}

TEST_F(AddressSpaceTest, LayoutsOfAllSizes) {
    for (const Bytes limit : {4 * MiB, 6 * MiB, 100 * MiB, 1 * GiB, 7 * GiB, 8 * GiB, 64 * GiB, 1 * TiB})
        for (const unsigned regions : {1u, 2u, 3u, 9u}) {
            SCOPED_TRACE(std::to_string(limit / MiB) + " MiB, " + std::to_string(regions) + " regions");
            const AddressSpace& space = reserve(regions, limit);
            check_layout(space);
            EXPECT_LE(space.region_bytes(), limit);
            if (regions > 1) { EXPECT_TRUE(is_power_of_two(space.region_bytes())); }
            EXPECT_EQ(space.fast_frees(), space.region_bytes() / 8 >= 3 * thread_heaps_span + fast_bags);
        }
}

#if !defined(__SANITIZE_THREAD__)  // which leaves programs little address space
TEST_F(AddressSpaceTest, NoLimitTakesTheLongestRegions) {
    const AddressSpace& one = reserve(1, 0);
    check_layout(one);
    EXPECT_EQ(one.region_bytes(), fast_span);
    EXPECT_TRUE(one.fast_frees());
}

TEST_F(AddressSpaceTest, ManyNodesShareTheAddressSpace) {
    const AddressSpace& space = reserve(257, 0);
    check_layout(space);
    EXPECT_LE(space.region_bytes() * 257, 96 * TiB);
    EXPECT_GE(space.region_bytes(), 64 * GiB);
}
#endif

// The equation of the header, for thread heaps anywhere in their span: free() adds the bias to a
// pointer and reads one byte relative to the heap; it must be the byte of the map, for all bags.
TEST_F(AddressSpaceTest, TheBiasFindsTheMapsByte) {
    std::mt19937_64 random(3);
    for (const Bytes limit : {8 * GiB, 64 * GiB, 1 * TiB, 4 * TiB}) {
        const AddressSpace& space = reserve(limit == 4 * TiB ? 2 : 3, limit);
        ASSERT_TRUE(space.fast_frees());
        for (unsigned r = 0; r < space.regions(); ++r) {
            const Address start = space.region(r);
            const Address map = start + space.class_map_offset();
            const Address heaps = start + space.thread_heaps_offset();
            for (int i = 0; i < 2000; ++i) {
                Address h = heaps + align_down(random() % thread_heaps_span, 64);
                if (i == 0) h = heaps;
                if (i == 1) h = heaps + thread_heaps_span - 64;
                const Address bias = ((class_reach - (h - map)) << bag_shift) - start;
                const auto byte_of = [&](Address p) { return h - class_reach + ((p + bias) >> bag_shift); };
                const auto index_of = [&](Address p) { return (p + bias) >> bag_shift; };
                const Address own = start + random() % space.region_bytes();
                ASSERT_LT(index_of(own), fast_bound);
                ASSERT_EQ(byte_of(own), map + ((own - start) >> bag_shift));
                // Any other pointer fails the comparison or finds a byte of map or guards.
                for (const Address p : {static_cast<Address>(random() >> 17), start - 1 - random() % (8 * TiB),
                                        start + space.region_bytes() + random() % (16 * TiB), Address{0}}) {
                    if (index_of(p) >= fast_bound) continue;
                    ASSERT_GE(byte_of(p), start);
                    ASSERT_LT(byte_of(p), heaps);
                    const bool inside = p - start < space.region_bytes();
                    if (!inside) { ASSERT_FALSE(byte_of(p) >= map && byte_of(p) < map + (space.region_bytes() >> bag_shift)); }
                }
            }
        }
    }
}

// Runs in a child, whose limit is its own.
template <class Body>
int in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#if !defined(__SANITIZE_THREAD__)  // its shadow alone is above every limit
TEST(AddressSpaceLimits, ALimitedAddressSpaceIsSharedWithTheProgram) {
    for (const Bytes room : {64 * MiB, 512 * MiB, 4 * GiB, 64 * GiB})
        for (const unsigned regions : {1u, 9u}) {
            const int result = in_child([=] {
                const Bytes used = [] {
                    FILE* f = fopen("/proc/self/statm", "r");
                    unsigned long pages = 0;
                    const int n = fscanf(f, "%lu", &pages);
                    fclose(f);
                    return n == 1 ? pages * 4 * KiB : 0;
                }();
                const rlimit limit{used + room, used + room};
                if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
                AddressSpace space;
                if (!space.reserve(regions, 0, node_heap)) return room / regions >= 12 * MiB ? 2 : 0;
                if (space.region_bytes() * regions > room / 3 * 2) return 3;
                if (space.region_bytes() * regions * 4 < room) return 4;  // halved at most twice
                // The rest is the program's.
                return os::map(room / 4) != nullptr ? 0 : 5;
            });
            EXPECT_EQ(result, 0) << room / MiB << " MiB, " << regions << " regions";
        }
}

TEST(AddressSpaceLimits, NoRoomAtAllIsAnAnswer) {
    EXPECT_EQ(in_child([] {
                  const rlimit limit{1 * MiB, 1 * MiB};
                  setrlimit(RLIMIT_AS, &limit);
                  AddressSpace space;
                  return space.reserve(1, 0, node_heap) ? 1 : 0;
              }),
              0);
}
#endif

}  // namespace
}  // namespace numalloc
