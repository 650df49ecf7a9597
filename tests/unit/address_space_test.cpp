// Where the regions lie, and the equation by which free() finds the byte of a bag.
#include <gtest/gtest.h>

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "heap/space/region.h"

namespace numalloc {
namespace {

constexpr Bytes node_heap = 64 * KiB;

struct Part {
    Bytes begin, end;  // of what may ever be mapped
    const char* name;
};

// In the order of a region.
std::vector<Part> parts_of(const Places& at) {
    const Bytes page = os::page_size();
    const Bytes first = at.bags >> bag_shift;
    const Bytes end = at.bags_end >> bag_shift;
    const Bytes behind = policy::class_map_behind >> bag_shift;
    return {{at.bags, at.bags_end, "bags"},
            {align_down(at.class_map + first - behind, page),
             align_up(at.class_map + min_of<Bytes>(end + (policy::class_map_ahead >> bag_shift), most_bags), page), "class map"},
            {at.thread_heaps, at.thread_heaps_end, "thread heaps"},
            {at.bag_marks, at.bag_marks + align_up(bag_marks_bytes(end), page), "bag marks"},
            {at.bag_table, at.bag_table + align_up(end * sizeof(Bag), page), "bag table"},
            {at.node_heap, at.node_heap + align_up(node_heap, page), "node heap"}};
}

void check_region(const AddressSpace& space, unsigned r) {
    const Places at = space.places(r);
    const Bytes page = os::page_size();
    EXPECT_EQ(space.region(r) % os::huge_page, 0u);
    EXPECT_EQ(at.bags % os::huge_page, 0u);
    EXPECT_EQ(at.bags_end % os::huge_page, 0u);
    EXPECT_GE(at.bags >> bag_shift, 1u) << "no_bag is nobody's";
    EXPECT_LT(at.bags, at.bags_end);
    EXPECT_LE(at.bags_end, space.end_offset());
    Bytes end = 0;
    for (const Part& part : parts_of(at)) {
        EXPECT_EQ(part.begin % page, 0u) << part.name;
        EXPECT_LT(part.begin, part.end) << part.name;
        EXPECT_GE(part.begin, end + page) << "a page that nobody may touch before the " << part.name;
        end = part.end;
    }
    EXPECT_LE(end + page, space.stride());
    // What keeps the other regions out of reach of free()'s comparison, and what it may read before the class map.
    EXPECT_EQ(at.thread_heaps_end, at.class_map + class_reach);
    EXPECT_LE(space.end_offset(), space.stride() / 2);
    const Bytes longest_before = at.thread_heaps_end - at.thread_heaps;
    EXPECT_GT(longest_before, 0u);
    EXPECT_LE(longest_before << bag_shift, space.stride() - space.end_offset());
    EXPECT_GE(at.class_map, at.bags_end + longest_before);
}

void check_layout(const AddressSpace& space) {
    EXPECT_TRUE(is_power_of_two(space.stride()));
    std::set<Address> regions;
    for (unsigned r = 0; r < space.regions(); ++r) {
        check_region(space, r);
        const Address start = space.region(r);
        EXPECT_TRUE(regions.insert(start).second);
        EXPECT_EQ((start - space.start()) % space.stride(), 0u);
        for (const Bytes offset : {Bytes{0}, space.places(r).bags, space.end_offset() - 1, space.places(r).node_heap, space.stride() - 1}) {
            const auto* const p = reinterpret_cast<const void*>(start + offset);
            EXPECT_TRUE(space.contains(p));
            EXPECT_EQ(space.region_of(p), r);
        }
    }
    EXPECT_EQ(*regions.begin(), space.start());
    EXPECT_EQ(*regions.rbegin() + space.stride(), space.start() + space.bytes());
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.start() - 1)));
    EXPECT_FALSE(space.contains(reinterpret_cast<const void*>(space.start() + space.bytes())));
    EXPECT_FALSE(space.contains(nullptr));
}

// All chance comes from the bytes that the kernel gave the process: other bytes, another process.
void become(std::uint64_t process) {
    const std::uint64_t bytes[2] = {process * 0x9E3779B97F4A7C15U, ~process};
    std::memcpy(reinterpret_cast<void*>(getauxval(AT_RANDOM)), bytes, sizeof bytes);
}

TEST(AddressSpaceTest, LayoutsOfAllStrides) {
    for (Bytes stride = smallest_stride; stride <= largest_stride; stride *= 2)
        for (const unsigned regions : {1u, 2u, 3u, 5u, 9u, 17u, 33u}) {
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
        EXPECT_EQ(os::try_range(reinterpret_cast<void*>(space.region(r)), space.stride()), os::Mapped::done) << r;
}

#if defined(__SANITIZE_THREAD__)  // there is no room for longer ones at every place that is drawn
constexpr Bytes drawn_strides[] = {smallest_stride};
#else
constexpr Bytes drawn_strides[] = {smallest_stride, 256 * GiB};
#endif

TEST(AddressSpaceTest, EachProcessHasPlacesOfItsOwn) {
    constexpr unsigned processes = 200;
    for (const Bytes stride : drawn_strides) {
        // What was seen of each: where the first region's first bag is, and from there the parts of its metadata; then from one
        // of these to the next, and between regions.
        std::vector<std::set<Bytes>> seen(10);
        for (unsigned process = 0; process < processes; ++process) {
            become(process);
            AddressSpace space;
            ASSERT_TRUE(space.choose(3, node_heap, {.stride = stride}));
            ASSERT_EQ(space.stride(), stride);
            check_layout(space);
            const Places at = space.places(0);
            const Places next = space.places(1);
            unsigned i = 0;
            for (const Bytes distance : {at.bags, at.class_map - at.bags, at.bag_table - at.bags, at.node_heap - at.bags,
                                         at.thread_heaps - at.class_map, at.bag_marks - at.class_map, at.bag_table - at.bag_marks,
                                         at.node_heap - at.bag_table, next.bags - at.bags, next.class_map - at.class_map})
                seen[i++].insert(distance);
        }
        // Of 128 places of bags four fifths are met; of a short region's thread heaps there are too few to spare any.
        const std::size_t bags = stride == smallest_stride ? 80 : 190;
        const std::size_t wanted[] = {bags, 190, 190, 190, 1, 190, 190, 190, bags, 190};
        for (unsigned i = 0; i < seen.size(); ++i) EXPECT_GE(seen[i].size(), wanted[i]) << i << " of " << stride / GiB << " GiB";
    }
}

TEST(AddressSpaceTest, TheRegionsOrderIsAnyOfAll) {
    std::set<std::vector<Address>> orders;
    for (unsigned process = 0; process < 300; ++process) {
        become(process);
        AddressSpace space;
        ASSERT_TRUE(space.choose(4, node_heap, {.stride = smallest_stride}));
        std::vector<Address> order;
        for (unsigned r = 0; r < 4; ++r) order.push_back((space.region(r) - space.start()) / space.stride());
        orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 24u);
}

// The equation of the header, for thread heaps anywhere in their span: free() adds the bias to a
// pointer, compares, and reads one byte relative to the heap. It must be the byte of the map for all bags.
// Another region's bags must fail the comparison.
TEST(AddressSpaceTest, TheBiasFindsTheMapsByte) {
    std::mt19937_64 random(3);
    for (Bytes stride = smallest_stride; stride <= largest_stride; stride *= 4) {
        become(stride);
        AddressSpace space;
        ASSERT_TRUE(space.choose(3, node_heap, {.stride = stride, .bags = stride == smallest_stride * 4 ? GiB : longest_region}));
        for (unsigned r = 0; r < space.regions(); ++r) {
            const Address start = space.region(r);
            const Places at = space.places(r);
            const std::uint64_t end_bag = at.bags_end >> bag_shift;
            for (int i = 0; i < 2000; ++i) {
                Address h = start + at.thread_heaps + align_down(random() % (at.thread_heaps_end - at.thread_heaps), 64);
                if (i == 0) h = start + at.thread_heaps;
                if (i == 1) h = start + at.thread_heaps_end - 64;
                const std::uint64_t before = class_reach - (h - start - at.class_map);
                const Address bias = (before << bag_shift) - start;
                const std::uint64_t bound = before + end_bag;
                const auto index_of = [&](Address p) { return (p + bias) >> bag_shift; };

                const Address own = start + (i == 2 ? at.bags_end - 1 : at.bags + random() % (at.bags_end - at.bags));
                ASSERT_LT(index_of(own), bound);
                ASSERT_EQ(h - class_reach + index_of(own), start + at.class_map + ((own - start) >> bag_shift));
                // Its own metadata, the bags of the other regions, and what is far away.
                std::vector<Address> others{start + at.bags_end, start + at.class_map, start + at.node_heap, start + space.stride() - 1,
                                            Address{0}, Address{1}, ~Address{0} >> 17};
                for (unsigned other = 0; other < space.regions(); ++other) {
                    if (other == r) continue;
                    const Places its = space.places(other);
                    for (const Bytes offset : {its.bags, its.bags_end - 1, its.bags + random() % (its.bags_end - its.bags)})
                        others.push_back(space.region(other) + offset);
                }
                for (const Address p : others) ASSERT_GE(index_of(p), bound) << std::hex << p << " from " << start;
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

// As debuggers want it. The kernel's bytes are others in each process all the same.
TEST(AddressSpaceTest, WhoAsksForTheSameAddressesGetsThem) {
    EXPECT_EQ(in_child([] {
                  if (personality(ADDR_NO_RANDOMIZE) < 0) return 0;
                  const std::uint64_t first = os::layout_seed();
                  become(77);
                  if (os::layout_seed() != first) return 1;
                  if (personality(0) < 0) return 2;
                  const std::uint64_t second = os::layout_seed();
                  become(78);
                  return os::layout_seed() != second ? 0 : 3;
              }),
              0);
}

// The key of freed objects can be read in them: it must not tell where things are.
TEST(AddressSpaceTest, TheSecretAndTheLayoutAreTwoNumbers) {
    for (unsigned process = 0; process < 100; ++process) {
        become(process);
        EXPECT_NE(os::layout_seed(), os::secret_seed());
    }
}

TEST(AddressSpaceTest, AnotherMappingAtTheFirstChoiceMeansAnotherPlace) {
    EXPECT_EQ(in_child([] {
                  AddressSpace first;
                  if (!first.choose(1, node_heap)) return 1;
                  void* const bags = reinterpret_cast<void*>(first.region(0) + first.places(0).bags);
                  if (os::map_at(bags, os::page_size()) != os::Mapped::done) return 2;
                  AddressSpace second;
                  if (!second.choose(1, node_heap)) return 3;
                  return second.contains(bags) ? 4 : 0;
              }),
              0);
}

TEST(AddressSpaceTest, TheWholeIsHeldWhereThatIsAsked) {
    EXPECT_EQ(in_child([] {
                  AddressSpace space;
                  if (!space.choose(2, node_heap, {.stride = smallest_stride, .held = true})) return 1;
                  void* const start = reinterpret_cast<void*>(space.region(0));
                  if (os::try_range(start, os::page_size()) != os::Mapped::taken) return 2;
                  if (space.map(space.region(1), os::page_size()) != os::Mapped::done) return 3;
                  *reinterpret_cast<char*>(space.region(1)) = 1;
                  return 0;
              }),
              0);
}

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
