// Where the regions lie, and the equation by which free() finds the byte of a bag.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/personality.h>
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

void check_layout(const AddressSpace& space) {
    EXPECT_EQ(space.region(0) % os::huge_page, 0u);
    EXPECT_EQ(space.data_offset() % os::huge_page, 0u);
    EXPECT_EQ(space.end_offset() % os::huge_page, 0u);
    EXPECT_TRUE(is_power_of_two(space.stride()));
    const Bytes bags = space.end_offset() >> bag_shift;
    // One after the other, each with room for what it holds.
    EXPECT_GE(space.thread_heaps_offset(), bags);  // the class map comes first
    EXPECT_GT(space.bag_marks_offset(), space.thread_heaps_offset());
    EXPECT_GE(space.bag_table_offset(), space.bag_marks_offset() + bag_marks_bytes(bags));
    EXPECT_GE(space.node_heap_offset(), space.bag_table_offset() + bags * sizeof(Bag));
    EXPECT_GE(space.data_offset(), space.node_heap_offset() + node_heap);
    EXPECT_LT(space.data_offset(), space.end_offset());
    // The rest keeps the next region out of reach of free()'s comparison.
    EXPECT_LE(space.end_offset(), space.stride() / 2);
    EXPECT_LE(space.thread_heaps_bytes() << bag_shift, space.stride() - space.end_offset());
    for (const Bytes offset :
         {space.thread_heaps_offset(), space.bag_marks_offset(), space.bag_table_offset(), space.node_heap_offset()})
        EXPECT_EQ(offset % os::page_size(), 0u);

    for (unsigned r = 0; r < space.regions(); ++r) {
        const auto at = [&](Bytes offset) { return reinterpret_cast<const void*>(space.region(r) + offset); };
        EXPECT_EQ(space.region_of(at(0)), r);
        EXPECT_EQ(space.region_of(at(space.end_offset() - 1)), r);
        EXPECT_TRUE(space.contains(at(0)));
        EXPECT_TRUE(space.contains(at(space.end_offset() - 1)));
    }
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.region(0) - 1)));
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.region(0) + space.stride() * space.regions())));
    EXPECT_FALSE(space.contains(nullptr));
}

TEST(AddressSpaceTest, LayoutsOfAllStrides) {
    for (Bytes stride = smallest_stride; stride <= largest_stride; stride *= 2)
        for (const unsigned regions : {1u, 2u, 3u, 9u}) {
            SCOPED_TRACE(std::to_string(stride / GiB) + " GiB, " + std::to_string(regions) + " regions");
            AddressSpace space;
            ASSERT_TRUE(space.choose(regions, node_heap, {.stride = stride}));
            check_layout(space);
            EXPECT_LE(space.stride(), stride);
        }
}

#if !defined(__SANITIZE_THREAD__)  // which lets programs map little of the address space
TEST(AddressSpaceTest, ANodeAloneHasTheLongestRegion) {
    AddressSpace space;
    ASSERT_TRUE(space.choose(1, node_heap));
    check_layout(space);
    EXPECT_EQ(space.end_offset(), longest_region);
}

TEST(AddressSpaceTest, EightNodesHaveTwoTebibytesEachAtLeast) {
    AddressSpace space;
    ASSERT_TRUE(space.choose(9, node_heap));
    EXPECT_GE(space.end_offset(), 2 * TiB);
}

TEST(AddressSpaceTest, ManyNodesShareTheAddressSpace) {
    AddressSpace space;
    ASSERT_TRUE(space.choose(257, node_heap));
    check_layout(space);
    EXPECT_GE(space.end_offset(), 64 * GiB);
}
#endif

TEST(AddressSpaceTest, NothingIsMappedBeforeItIsNeeded) {
    AddressSpace space;
    ASSERT_TRUE(space.choose(3, node_heap));
    for (unsigned r = 0; r < 3; ++r)
        EXPECT_TRUE(os::is_free(reinterpret_cast<void*>(space.region(r)), space.stride())) << r;
}

// The equation of the header, for thread heaps anywhere in their span: free() adds the bias to a
// pointer, compares, and reads one byte relative to the heap. It must be the byte of the map for all bags.
// Another region's addresses must fail the comparison.
TEST(AddressSpaceTest, TheBiasFindsTheMapsByte) {
    std::mt19937_64 random(3);
    for (Bytes stride = smallest_stride; stride <= largest_stride; stride *= 4) {
        AddressSpace space;
        ASSERT_TRUE(space.choose(3, node_heap,
                                 {.stride = stride, .bags = stride == smallest_stride * 4 ? GiB : longest_region}));
        const std::uint64_t end_bag = space.end_offset() >> bag_shift;
        for (unsigned r = 0; r < space.regions(); ++r) {
            const Address start = space.region(r);
            for (int i = 0; i < 2000; ++i) {
                Address h = start + space.thread_heaps_offset() + align_down(random() % space.thread_heaps_bytes(), 64);
                if (i == 0) h = start + space.thread_heaps_offset();
                if (i == 1) h = start + class_reach - 64;
                const std::uint64_t before = class_reach - (h - start);
                const Address bias = (before << bag_shift) - start;
                const std::uint64_t bound = before + end_bag;
                const auto index_of = [&](Address p) { return (p + bias) >> bag_shift; };

                const Address own = start + (i == 2 ? space.end_offset() - 1 : random() % space.end_offset());
                ASSERT_LT(index_of(own), bound);
                ASSERT_EQ(h - class_reach + index_of(own), start + ((own - start) >> bag_shift));
                // The bags of the regions beside it, its own other half, and what is far away.
                const Bytes in_region = random() % space.end_offset();
                for (const Address p :
                     {start + stride + in_region, start - stride + in_region, start + 2 * stride,
                      start + space.end_offset(), start + stride - 1, start - stride + space.end_offset() - 1,
                      Address{0}, Address{1}, ~Address{0} >> 17}) {
                    if (p - start < space.end_offset()) continue;
                    ASSERT_GE(index_of(p), bound) << std::hex << p << " from " << start;
                }
            }
        }
    }
}

// Runs in a child, whose limits and mappings are its own.
template <class Body>
int in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(AddressSpaceTest, AnotherMappingAtTheFirstChoiceMeansAnotherPlace) {
    EXPECT_EQ(in_child([] {
                  AddressSpace first;
                  if (!first.choose(1, node_heap)) return 1;
                  void* const start = reinterpret_cast<void*>(first.region(0));
                  if (os::map_at(start, os::page_size()) != os::Mapped::done) return 2;
                  AddressSpace second;
                  if (!second.choose(1, node_heap)) return 3;
                  return second.contains(start) ? 4 : 0;
              }),
              0);
}

TEST(AddressSpaceTest, TheWholeIsHeldWhereThatIsAsked) {
    EXPECT_EQ(in_child([] {
                  AddressSpace space;
                  if (!space.choose(2, node_heap, {.stride = smallest_stride, .held = true})) return 1;
                  void* const start = reinterpret_cast<void*>(space.region(0));
                  if (os::is_free(start, os::page_size())) return 2;
                  if (space.map(space.region(1), os::page_size()) != os::Mapped::done) return 3;
                  *reinterpret_cast<char*>(space.region(1)) = 1;
                  return 0;
              }),
              0);
}

#if !defined(__SANITIZE_THREAD__)
// free()'s comparison lets addresses pass from T * 32 KiB below the first region on. No library, stack or other mapping
// of the kernel's choice may lie there.
TEST(AddressSpaceTest, NothingOfTheKernelsChoiceIsNear) {
    for (const unsigned regions : {1u, 3u, 5u, 9u, 17u, 33u, 65u, 257u})
        for (const bool held : {false, true})
            EXPECT_EQ(in_child([&] {
                          AddressSpace space;
                          if (!space.choose(regions, node_heap,
                                            {.stride = held ? smallest_stride : largest_stride, .held = held}))
                              return 1;
                          const Address begin = space.region(0) - (space.thread_heaps_bytes() << bag_shift);
                          const Address end = space.region(regions - 1) + space.end_offset();
                          for (const Address other :
                               {os::where_the_kernel_maps(), address_of(environ), reinterpret_cast<Address>(&puts),
                                reinterpret_cast<Address>(&is_power_of_two)})
                              if (other - begin < end - begin) return 2;
                          return 0;
                      }),
                      0)
                << regions << " regions, held: " << held;
}

// It puts them at other addresses if the stack is unlimited, and at others again in the old layout.
TEST(AddressSpaceTest, NothingIsNearWithAnUnlimitedStack) {
    for (const unsigned long layout : {0UL, 0x0200000UL}) {  // ADDR_COMPAT_LAYOUT
        const int status = in_child([layout] {
            const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
            if (setrlimit(RLIMIT_STACK, &none) != 0) return 77;  // not allowed here
            personality(layout);
            execl("/proc/self/exe", "itself", "--gtest_filter=*NothingOfTheKernelsChoiceIsNear", nullptr);
            return 1;
        });
        if (status == 77) GTEST_SKIP() << "the stack is limited";
        EXPECT_EQ(status, 0) << layout;
    }
}
#endif

#if !defined(__SANITIZE_THREAD__)  // its shadow alone is above every limit
TEST(AddressSpaceTest, ALimitOnAddressSpaceChangesNothing) {
    EXPECT_EQ(in_child([] {
                  AddressSpace before;
                  if (!before.choose(1, node_heap)) return 1;
                  const rlimit limit{64 * MiB, 64 * MiB};
                  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
                  AddressSpace space;
                  if (!space.choose(1, node_heap)) return 3;
                  if (space.end_offset() != before.end_offset()) return 4;
                  return space.map(space.region(0), os::page_size()) == os::Mapped::done ? 0 : 5;
              }),
              0);
}
#endif

}  // namespace
}  // namespace numalloc
