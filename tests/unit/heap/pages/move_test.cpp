// Blocks whose pages move: what is in them survives every neighbourhood of mappings, is not copied
// where it need not be, and no mapping is left over when the memory has gone back to the OS.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "support/made_up_node.h"

namespace numalloc {
namespace {

using testing::Node;

constexpr std::uint32_t bags_of_mib = 32;

struct Block {
    BagIndex run;
    std::uint32_t bags;
    unsigned char mark;
};

void write(Node& node, const Block& b) {
    for (Bytes i = 0; i < b.bags * bag_bytes; i += 4096) node.at(b.run)[i] = static_cast<char>(b.mark + i / 4096);
}
bool intact(Node& node, const Block& b, std::uint32_t bags) {
    for (Bytes i = 0; i < bags * bag_bytes; i += 4096)
        if (node.at(b.run)[i] != static_cast<char>(b.mark + i / 4096)) return false;
    return true;
}
Block take(Node& node, std::uint32_t bags, unsigned char mark) {
    Block b{node.take(bags), bags, mark};
    write(node, b);
    return b;
}

Bytes resident_bytes(void* p, Bytes bytes) {
    std::vector<unsigned char> pages(bytes / os::page_size());
    EXPECT_EQ(mincore(p, bytes, pages.data()), 0);
    Bytes resident = 0;
    for (const unsigned char page : pages) resident += (page & 1) * os::page_size();
    return resident;
}

// What a program may do to its own block: its mapping is split there.
void split(Node& node, BagIndex bag, std::uint32_t bags) {
    bag.value -= (address_of(node.at(bag)) % os::page_size()) >> bag_shift;  // mappings are whole pages
    ASSERT_EQ(madvise(node.at(bag), PageHeap::whole_pages(bags) * bag_bytes, MADV_DONTDUMP), 0);
}

// Mappings that are readable and writable, in the node's bags.
unsigned mappings(const Node& node) {
    const Address from = address_of(node.pages.region().address(node.pages.region().first_bag()));
    const Address to = node.pages.region().start() + (Address{node.pages.region().end_bag().value} << bag_shift);
    FILE* file = std::fopen("/proc/self/maps", "r");
    unsigned count = 0;
    unsigned long begin, end;
    char rights[8], line[512];
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3)
            count += begin < to && end > from && rights[1] == 'w';
    std::fclose(file);
    return count;
}

Bytes moved_by_kernel = 0;

TEST(PagesMove, PagesMoveOutOfOneMapping) {
    Node node(-1);
    const Block from = take(node, 8 * bags_of_mib, 1);
    const Block to{node.take(16 * bags_of_mib), 16 * bags_of_mib, 1};
    moved_by_kernel = 0;
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_EQ(moved_by_kernel, 8 * MiB) << "the rest was copied";
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(node.pages.moved_mappings(), 1u);
    // The source is free, and known to be zero.
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    EXPECT_EQ(node.take(from.bags), from.run);
    EXPECT_EQ(node.dirty(from.run, from.bags), 0u);
    EXPECT_EQ(node.at(from.run)[4096], 0);
}

TEST(PagesMove, PagesMoveOutOfSeveralMappings) {
    Node node(-1);
    const Block from = take(node, 12 * bags_of_mib, 1);
    const unsigned at_first = mappings(node);
    split(node, BagIndex{from.run.value + 100}, 130);
    ASSERT_EQ(mappings(node), at_first + 2);
    const Block to{node.take(16 * bags_of_mib), 16 * bags_of_mib, 1};
    ASSERT_NE(node.take(1), PageHeap::none);  // a wall: the end of the heap would leave the address space
    moved_by_kernel = 0;
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_EQ(moved_by_kernel, 12 * MiB) << "the rest was copied";
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(node.pages.moved_mappings(), 3u);
    // Where it was, all is natural again; where it is, when that has been purged.
    node.pages.give(to.run);
    node.pages.purge(true);
    EXPECT_EQ(node.pages.moved_mappings(), 0u);
    EXPECT_EQ(mappings(node), at_first);
    EXPECT_EQ(node.at(to.run)[0], 0);
}

TEST(PagesMove, ShortPiecesAreCopiedAndNotMappedForThemselves) {
    Node node(-1);
    const Block from = take(node, 8 * bags_of_mib, 1);
    for (std::uint32_t bag = 10; bag < 200; bag += 20) split(node, BagIndex{from.run.value + bag}, 1);
    const Block to{node.take(16 * bags_of_mib), 16 * bags_of_mib, 1};
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(node.pages.moved_mappings(), 11u) << "ten single bags were copied";
}

TEST(PagesMove, SplitsWithinABagAreCopied) {
    Node node(-1);
    const Block from = take(node, 8 * bags_of_mib, 1);
    const Bytes page = os::page_size();
    for (Bytes i = 3; i < min_of<Bytes>(300, 8 * MiB / page); i += 9)
        ASSERT_EQ(madvise(node.at(from.run) + i * page, page, MADV_DONTDUMP), 0);
    const Block to{node.take(16 * bags_of_mib), 16 * bags_of_mib, 1};
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_TRUE(intact(node, to, from.bags));
}

TEST(PagesMove, NoMoreMappingsThanAllowed) {
    Node node(-1, 512 * MiB, 4);
    std::vector<Block> blocks;
    for (int i = 0; i < 10; ++i) {
        const Block from = take(node, 4 * bags_of_mib, static_cast<unsigned char>(i));
        const Block to{node.take(5 * bags_of_mib), 5 * bags_of_mib, from.mark};
        ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
        EXPECT_TRUE(intact(node, to, from.bags));
        blocks.push_back(to);
    }
    EXPECT_EQ(node.pages.moved_mappings(), 4u);
    for (const Block& b : blocks) node.pages.give(b.run);
    node.pages.purge(true);
    EXPECT_EQ(node.pages.moved_mappings(), 0u);
}

// Moving would throw away the pages that are there, and leave a place whose next user faults.
TEST(PagesMove, ToAPlaceThatIsMostlyResidentIsACopy) {
    for (const std::uint32_t there : {3 * bags_of_mib, 6 * bags_of_mib}) {
        Node node(20000);
        const Block from = take(node, 9 * bags_of_mib, 1), rested = take(node, there, 2);
        node.pages.give(rested.run);
        const BagIndex to = node.take(9 * bags_of_mib);
        ASSERT_EQ(to, rested.run);
        ASSERT_TRUE(node.pages.move(from.run, to, from.bags));
        EXPECT_TRUE(intact(node, {to, from.bags, 1}, from.bags));
        const bool copied = there > from.bags / 2;
        EXPECT_EQ(node.pages.moved_mappings(), copied ? 0u : 1u);
        EXPECT_EQ(node.pages.use().dirty_bags > 0, copied) << "of the place that is left";
        node.pages.validate();
    }
}

// A copy would make it resident.
TEST(PagesMove, WhatWasNeverWrittenToIsMoved) {
    Node node(20000);
    const BagIndex from = node.take(9 * bags_of_mib), rested = node.take(9 * bags_of_mib), wall = node.take(1);
    node.pages.give(rested);
    const BagIndex to = node.take(9 * bags_of_mib);
    ASSERT_EQ(to, rested);
    ASSERT_TRUE(node.pages.move(from, to, 9 * bags_of_mib));
    EXPECT_EQ(node.pages.moved_mappings(), 1u);
    (void)wall;
}

TEST(PagesMove, LockedMemoryIsCopied) {
    Node node(-1);
    const Block from = take(node, 4 * bags_of_mib, 1);
    const Block to{node.take(5 * bags_of_mib), 5 * bags_of_mib, 1};
    // ThreadSanitizer makes libc's mlock() do nothing.
    if (syscall(SYS_mlock, node.at(to.run), bag_bytes) != 0) GTEST_SKIP() << "no memory can be locked here";
    EXPECT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(node.pages.moved_mappings(), 0u);
    EXPECT_EQ(node.pages.big_run(from.run), 0u);
    EXPECT_EQ(node.pages.big_run(to.run), to.bags);
}

// mremap unmaps the target before it sees that the limit forbids the move, and the limit forbids
// to fill the hole as well.
TEST(PagesMove, WhatTheLimitForbidsLosesNothing) {
    Node node(-1);
    const Block from = take(node, 8 * bags_of_mib, 1);
    const Block to{node.take(8 * bags_of_mib), 8 * bags_of_mib, 1};
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    const rlimit none{1 << 20, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    const bool done = node.pages.move(from.run, to.run, from.bags);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    EXPECT_TRUE(intact(node, done ? to : from, from.bags)) << "copied, or left where it was";
    EXPECT_EQ(node.pages.moved_mappings(), 0u);
    EXPECT_EQ(node.pages.big_run(from.run), done ? 0 : from.bags);
}

// Strict binding: where pages are moved to, the node need not have as many again.
TEST(PagesMoveStrict, OnlyWhatIsNewGetsPagesBefore) {
    Node node(-1, 512 * MiB, 8192, false, true);
    const Block from = take(node, 8 * bags_of_mib, 1);
    const Block to{node.pages.take_to_move(16 * bags_of_mib, 64, from.bags, false), 16 * bags_of_mib, 1};
    ASSERT_NE(to.run, PageHeap::none);
    EXPECT_EQ(resident_bytes(node.at(to.run), 8 * MiB), 0u);
    EXPECT_EQ(resident_bytes(node.at(to.run) + 8 * MiB, 8 * MiB), 8 * MiB);
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(resident_bytes(node.at(to.run), 16 * MiB), 16 * MiB);
}

TEST(PagesMoveStrict, WhatIsCopiedGivesItsPagesBack) {
    Node node(-1, 512 * MiB, 0, false, true);
    const Block from = take(node, 8 * bags_of_mib, 1);
    const Block to{node.pages.take_to_move(9 * bags_of_mib, 64, from.bags, false), 9 * bags_of_mib, 1};
    ASSERT_TRUE(node.pages.move(from.run, to.run, from.bags));
    EXPECT_TRUE(intact(node, to, from.bags));
    EXPECT_EQ(resident_bytes(node.at(from.run), 8 * MiB), 0u);
    EXPECT_EQ(node.take(from.bags), from.run);
    EXPECT_EQ(resident_bytes(node.at(from.run), 8 * MiB), 8 * MiB) << "promised anew";
}

// Pages that were put there before the memory ran out would be nobody's.
TEST(PagesMoveStrict, PagesThatDidNotSufficeGoBack) {
    Node node(-1, 512 * MiB, 8192, false, true);
    const Block block = take(node, 8 * bags_of_mib, 1);
    const BagIndex wall = node.take_filled(1);
    node.pages.give(block.run);
    node.pages.purge(true);
    // The kernel puts no pages where nobody may write, as where there are none.
    ASSERT_EQ(mprotect(node.at(block.run) + 4 * MiB, 4 * MiB, PROT_READ), 0);
    EXPECT_EQ(node.take(block.bags), PageHeap::none);
    EXPECT_EQ(resident_bytes(node.at(block.run), 8 * MiB), 0u);
    ASSERT_EQ(mprotect(node.at(block.run) + 4 * MiB, 4 * MiB, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(node.take(block.bags), block.run);
    EXPECT_EQ(resident_bytes(node.at(block.run), 8 * MiB), 8 * MiB);
    node.pages.validate();
    node.pages.give(wall);
}

TEST(PagesMove, RandomMovesSplitsAndPurgesLeaveNothingBehind) {
    Node node(-1, 1 * GiB);
    std::mt19937 random(7);
    // Grown at first, so that the mappings can be compared.
    node.pages.give(take(node, 400 * bags_of_mib, 1).run);
    node.pages.purge(true);
    const unsigned at_first = mappings(node);
    std::vector<Block> blocks;
    for (int i = 0; i < 12; ++i) blocks.push_back(take(node, 8 + random() % 200, static_cast<unsigned char>(i)));
    for (int round = 0; round < 400; ++round) {
        Block& b = blocks[random() % blocks.size()];
        if (random() % 4 == 0) {
            node.pages.give(b.run);
            b = take(node, 8 + random() % 200, static_cast<unsigned char>(round));
        }
        if (random() % 8 == 0) split(node, BagIndex{b.run.value + random() % b.bags}, 1);
        const std::uint32_t larger = b.bags + random() % 100;
        if (larger < 600) {
            const BagIndex to = node.pages.take(larger, random() % 2 == 0 ? 64 : 1, BagState::big);
            if (to == PageHeap::none) continue;
            ASSERT_TRUE(node.pages.move(b.run, to, b.bags));
            b.run = to;
            ASSERT_TRUE(intact(node, b, b.bags)) << round;
            b.bags = larger;
            write(node, b);
        }
        if (random() % 10 == 0) node.pages.purge(true);
        node.pages.validate();
    }
    // A split that no move came by is the program's own, and stays.
    for (const Block& b : blocks) {
        madvise(node.at(b.run), b.bags * bag_bytes, MADV_DODUMP);
        node.pages.give(b.run);
    }
    node.pages.purge(true);
    EXPECT_EQ(node.pages.moved_mappings(), 0u);
    EXPECT_LE(mappings(node), at_first + 12);
}

}  // namespace

// The linker's names for os::move_mapping() as the sources call it, and as it is.
extern "C" os::Replaced __real__ZN8numalloc2os12move_mappingEPvS1_m(void* from, void* to, Bytes bytes);
extern "C" os::Replaced __wrap__ZN8numalloc2os12move_mappingEPvS1_m(void* from, void* to, Bytes bytes) {
    const os::Replaced result = __real__ZN8numalloc2os12move_mappingEPvS1_m(from, to, bytes);
    if (result == os::Replaced::done) moved_by_kernel += bytes;
    return result;
}

}  // namespace numalloc
