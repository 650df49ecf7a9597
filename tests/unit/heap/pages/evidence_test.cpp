// Objects above 8 KiB have huge pages where memory was densely used, and only there.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "heap/pages/stretches.h"
#include "support/advice.h"
#include "support/made_up_clock.h"
#include "support/made_up_node.h"

namespace numalloc {
namespace {

using testing::advice_at;
using testing::Node;

constexpr std::uint32_t huge_bags = 64;

struct EvidenceNode : Node {
    explicit EvidenceNode(std::int32_t purge_delay, std::uint32_t most_changes = policy::evidence::most_changes)
        : Node(purge_delay, 4 * GiB, 8192, true, false, nullptr, most_changes) {
        // What is taken next begins a huge page.
        const BagIndex from = pages.region().huge_from();
        const auto to_huge_page = static_cast<std::uint32_t>((0 - address_of(at(from))) % os::huge_page / bag_bytes);
        small(from - pages.region().first_bag() + to_huge_page);
    }
    BagIndex small(std::uint32_t bags) { return pages.take(bags, 1, BagState::small); }
    BagIndex big_filled(std::uint32_t huge_pages) { return take_filled(huge_pages * huge_bags); }
    BagIndex big(std::uint32_t huge_pages) { return take(huge_pages * huge_bags); }
    // As the process's heap does.
    void free_big(BagIndex run) {
        pages.learn_from(run);
        pages.give(run);
    }
    std::string advice(BagIndex b) { return advice_at(at(b)); }
    // The kernel's advice is the mark, everywhere.
    void check(BagIndex from, BagIndex to) {
        pages.validate();
        for (BagIndex b = from; b < to; b = b + huge_bags / 2)
            ASSERT_EQ(advice(b), pages.region().count(BagMark::normal, b, 1) != 0 ? "nh" : "hg") << (b - from);
    }
};

// A kernel without huge pages knows no advice. The first 8 MiB of a node have none.
bool no_huge_pages() {
    Node node(0, 1 * GiB, 8192, true);
    constexpr std::uint32_t bags = 8 * huge_bags;
    return advice_at(node.at(node.take(bags) + (bags - 1))) == "";
}
#define NEEDS_HUGE_PAGES                                                                \
    if (no_huge_pages()) GTEST_SKIP() << "a kernel without huge pages";                 \
    if (!os::make_readable(&huge_bags, 1)) GTEST_SKIP() << "a kernel before Linux 5.14"

TEST(Evidence, WhatWasNeverUsedIsNormalForABigObjectAndHugeForSmallOnes) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    const BagIndex first = node.small(huge_bags), big = node.big(8), behind = node.small(4 * huge_bags);
    EXPECT_EQ(node.advice(first), "hg");
    EXPECT_EQ(node.advice(big), "nh");
    EXPECT_EQ(node.advice(big + (8 * huge_bags - 1)), "nh");
    EXPECT_EQ(node.advice(behind + huge_bags), "hg");
    node.check(first, behind + 4 * huge_bags);
}

// Buffers, of which a program may use a small part.
TEST(Evidence, WhatWasNeverUsedIsNormalForObjectsAbove8KiB) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    const auto take = [&](Bytes size) {
        const ClassId c = class_of(size);
        BagIndex run = node.pages.take_small_at_once(shape_of(c).bags, c);
        EXPECT_TRUE(run == PageHeap::none || size <= 8 * KiB) << size;
        if (run == PageHeap::none) run = node.pages.take_small(shape_of(c).bags, c, 0);
        return run;
    };
    for (const Bytes size : {64 * KiB, 512 * KiB, 9 * KiB, 8 * KiB, 64 * Bytes{1}, 40 * KiB}) {
        // The object that begins the huge page decides.
        const BagIndex first = take(size);
        ASSERT_EQ(address_of(node.at(first)) % os::huge_page, 0u);
        EXPECT_EQ(node.advice(first), size > 8 * KiB ? "nh" : "hg") << size;
        const std::uint32_t used = shape_of(class_of(size)).bags;
        node.small(huge_bags - used);
        node.check(first, first + huge_bags);
    }
}

// The end of the heap is unmapped when all is free. Then it may be mapped for smaller objects first.
TEST(Evidence, BuffersHaveNormalPagesAgainWhereTheEndWasUnmapped) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    const ClassId c = class_of(256 * KiB);
    for (int round = 0; round < 4; ++round) {
        std::vector<BagIndex> runs;
        if (round == 3) runs.push_back(node.small(huge_bags));
        const std::size_t first = runs.size();
        for (int i = 0; i < 400; ++i) runs.push_back(node.pages.take_small(shape_of(c).bags, c, 0));
        for (std::size_t i = first; i < runs.size(); ++i) ASSERT_EQ(node.advice(runs[i]), "nh") << round << ", " << i;
        ASSERT_EQ(node.advice(runs[0]), first != 0 ? "hg" : "nh") << round;
        node.check(runs[0], runs.back());
        const BagIndex last = runs.back();
        for (const BagIndex run : runs) node.pages.give(run);
        ASSERT_FALSE(node.pages.region().is_mapped(last));
    }
}

// Each is shorter than a huge page.
TEST(Evidence, BigObjectsThatShareAHugePageAreNormal) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(node.advice(node.take(huge_bags / 2 - 1)), "nh") << i;
    node.pages.validate();
}

TEST(Evidence, MemoryThatWasFilledIsHugeNextTime) {
    NEEDS_HUGE_PAGES;
    // Kept, purged, and unmapped at the end of the heap.
    for (const int how : {0, 1, 2}) {
        EvidenceNode node(how == 0 ? -1 : 0);
        const BagIndex big = node.big_filled(40);
        if (how != 2) node.small(1);
        ASSERT_EQ(node.advice(big), "nh");
        node.free_big(big);
        ASSERT_EQ(node.pages.region().is_mapped(big + 39 * huge_bags), how != 2);
        const BagIndex again = node.big(40);
        ASSERT_EQ(again, big);
        node.check(big, big + 40 * huge_bags);
        EXPECT_EQ(node.advice(big), "hg") << how;
        EXPECT_EQ(node.advice(big + 39 * huge_bags), "hg") << how;
    }
}

TEST(Evidence, MemoryThatWasHardlyTouchedStaysNormal) {
    NEEDS_HUGE_PAGES;
    for (const bool at_end : {false, true}) {
        EvidenceNode node(0);
        const BagIndex big = node.big(64);
        if (!at_end) node.small(1);
        for (std::uint32_t i = 0; i < 64 * huge_bags; i += huge_bags) *node.at(big + i) = 1;
        node.free_big(big);
        ASSERT_EQ(node.big(64), big);
        node.check(big, big + 64 * huge_bags);
        EXPECT_EQ(node.advice(big), "nh");
        EXPECT_EQ(node.advice(big + 63 * huge_bags), "nh");
    }
}

// Of huge pages that small objects or a dense big one left.
TEST(Evidence, ABigObjectThatHardlyTouchesHugePagesMakesThemNormal) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    const BagIndex small = node.small(32 * huge_bags);
    node.small(1);
    node.fill(small, 32 * huge_bags);
    node.pages.give(small);
    const BagIndex big = node.big(32);
    ASSERT_EQ(big, small);
    ASSERT_EQ(node.advice(big), "hg");
    *node.at(big + 100) = 1;
    node.free_big(big);
    EXPECT_EQ(node.advice(big), "nh");
    EXPECT_EQ(node.advice(big + (32 * huge_bags - 1)), "nh");
    node.check(big, big + 32 * huge_bags);
}

// The second has; the third has a bag less.
TEST(Evidence, WhoHasHalfOfAHugePageDecides) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(-1);
    const BagIndex left = node.take_filled(huge_bags / 2), right = node.take_filled(huge_bags / 2);
    const BagIndex less = node.take_filled(huge_bags / 2 - 1);
    node.small(1);
    ASSERT_EQ(node.advice(left), "nh");
    node.free_big(right);
    EXPECT_EQ(node.advice(left), "hg");
    EXPECT_EQ(node.advice(right), "hg");
    node.free_big(less);
    EXPECT_EQ(node.advice(less), "nh");
    node.pages.validate();
}

// It begins and ends far inside of one.
TEST(Evidence, LessThanHalfOfAHugePageDecidesNothing) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(-1);
    const BagIndex before = node.take(20), block = node.take_filled(17);
    node.small(1);
    node.free_big(block);
    EXPECT_EQ(node.advice(before), "nh");
    EXPECT_EQ(node.advice(block), "nh");
    node.pages.validate();
}

// The end of the heap is mapped again, with the marks that it had: they may be too many by then.
TEST(Evidence, WhatComesBackIsBoundedToo) {
    NEEDS_HUGE_PAGES;
    constexpr std::uint32_t most = 8, pieces = 8;
    EvidenceNode node(0, most);
    const BagIndex below = node.small(2 * pieces * huge_bags);
    node.fill(below, 2 * pieces * huge_bags);
    const BagIndex wall = node.small(huge_bags);
    const auto changes = [&] {
        const BagIndex first{node.pages.region().first_bag().value + 1}, end{node.pages.region().committed()};
        return node.pages.region().changes(BagMark::normal, first, end);
    };
    // Frees every second one. Returns the others.
    const auto by_turns = [&](bool filled) {
        std::vector<BagIndex> stay, go;
        for (std::uint32_t i = 0; i < pieces; ++i) {
            go.push_back(filled ? node.big_filled(1) : node.big(1));
            stay.push_back(node.big(1));
        }
        for (const BagIndex run : go) node.free_big(run);
        return stay;
    };
    for (const BagIndex run : by_turns(true)) node.pages.give(run);
    ASSERT_LE(node.pages.region().committed(), (wall + 2 * huge_bags).value);
    ASSERT_EQ(changes(), 0u);
    node.pages.give(below);
    const std::vector<BagIndex> stay = by_turns(false);
    ASSERT_GE(changes(), most - 1);
    (void)node.big(2 * pieces);
    EXPECT_LE(changes(), most);
    node.pages.validate();
}

// A guard page, or a hole.
TEST(Evidence, PagesThatCannotBeReadShowNothing) {
    NEEDS_HUGE_PAGES;
    for (const bool is_guard : {true, false}) {
        EvidenceNode node(-1);
        const BagIndex big = node.big_filled(8);
        node.small(1);
        ASSERT_EQ(
            is_guard ? mprotect(node.at(big), 8 * os::huge_page, PROT_NONE) : munmap(node.at(big), 8 * os::huge_page),
            0);
        EXPECT_FALSE(node.pages.learn_from(big));
        EXPECT_EQ(node.advice(big), is_guard ? "nh" : "");
        node.pages.validate();
    }
}

// Neither dense nor sparse; and memory that was resident before, of which nothing new is known.
TEST(Evidence, HalfUsedMemoryKeepsItsAdvice) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(-1);
    const BagIndex big = node.big(32);
    node.small(1);
    node.fill(big, 21 * huge_bags);
    node.free_big(big);
    EXPECT_EQ(node.advice(big), "nh");
    ASSERT_EQ(node.big_filled(32), big);
    node.free_big(big);
    EXPECT_EQ(node.advice(big), "nh") << "it was dirty when it was taken";
    node.check(big, big + 32 * huge_bags);
}

TEST(Evidence, WhatABigObjectGrowsIntoIsNormal) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0);
    const BagIndex big = node.big(4);
    ASSERT_TRUE(node.pages.resize(big, 400 * huge_bags));
    for (const std::uint32_t page : {3U, 4U, 100U, 399U}) EXPECT_EQ(node.advice(big + page * huge_bags), "nh") << page;
    node.check(big, big + 400 * huge_bags);
}

// The mapping keeps its advice, and the place that it left gets its own back.
TEST(Evidence, AMovedObjectKeepsItsAdvice) {
    NEEDS_HUGE_PAGES;
    for (const bool dense : {false, true}) {
        EvidenceNode node(0);
        BagIndex from = node.big(8);
        node.small(1);
        if (dense) {
            node.fill(from, 8 * huge_bags);
            node.free_big(from);
            ASSERT_EQ(node.big(8), from);
        }
        if (dense) node.fill(from, 8 * huge_bags);
        *node.at(from) = 1;
        const BagIndex to =
            node.pages.take_to_move(16 * huge_bags, huge_bags, 8 * huge_bags, node.pages.learn_from(from));
        ASSERT_TRUE(node.pages.move(from, to, 8 * huge_bags));
        EXPECT_EQ(node.advice(to), dense ? "hg" : "nh");
        EXPECT_EQ(node.advice(to + 15 * huge_bags), dense ? "hg" : "nh") << "what it grows into";
        ASSERT_EQ(node.big(8), from);
        EXPECT_EQ(node.advice(from), dense ? "hg" : "nh");
        node.check(from, from + 8 * huge_bags);
        node.check(to, to + 16 * huge_bags);
        node.free_big(to);
        node.pages.purge(true);
        node.pages.validate();
    }
}

// What small objects left would be huge.
TEST(Evidence, AMovedObjectTakesItsAdviceAlong) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(-1);
    const BagIndex small = node.small(16 * huge_bags);
    const BagIndex from = node.big(8);
    node.small(1);
    node.pages.give(small);
    node.pages.purge(true);
    const BagIndex to = node.pages.take_to_move(16 * huge_bags, huge_bags, 8 * huge_bags, node.pages.learn_from(from));
    ASSERT_EQ(to, small);
    ASSERT_TRUE(node.pages.move(from, to, 8 * huge_bags));
    EXPECT_EQ(node.advice(to), "nh");
    EXPECT_EQ(node.advice(to + 8 * huge_bags), "hg");
    node.check(to, to + 16 * huge_bags);
}

// A node's first memory has normal pages without a mark. What it was moved to and left again is no evidence.
TEST(Evidence, WhatMovedOutOfTheFirstMemoryLeavesNormalPages) {
    NEEDS_HUGE_PAGES;
    Node node(0, 4 * GiB, 8192, true, false, nullptr, policy::evidence::most_changes);
    constexpr std::uint32_t bags = 2 * huge_bags;
    const BagIndex first = node.take(bags);
    ASSERT_LT(first + bags, node.pages.region().huge_from());
    *node.at(first) = 1;
    node.take(8 * huge_bags);
    const BagIndex from = node.pages.take_to_move(2 * bags, huge_bags, bags, node.pages.learn_from(first));
    ASSERT_GT(from, node.pages.region().huge_from());
    ASSERT_TRUE(node.pages.move(first, from, bags));
    node.take(1);
    const BagIndex to = node.pages.take_to_move(4 * bags, huge_bags, 2 * bags, node.pages.learn_from(from));
    ASSERT_TRUE(node.pages.move(from, to, 2 * bags));
    ASSERT_EQ(node.take(2 * bags), from);
    for (std::uint32_t page = 0; page < 4; ++page) EXPECT_EQ(advice_at(node.at(from + page * huge_bags)), "nh") << page;
    node.pages.validate();
}

// Big and small by turns: each change may be the border of two mappings.
TEST(Evidence, ChangesOfAdviceAreBounded) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(0, 8);
    std::vector<std::string> advice;
    for (int i = 0; i < 6; ++i) {
        advice.push_back(node.advice(node.big(1)));
        node.small(huge_bags);
    }
    EXPECT_EQ(advice, (std::vector<std::string>{"nh", "nh", "nh", "nh", "hg", "hg"}));
    node.pages.validate();
}

// What another thread does between a mark and its advice.
std::function<void()> before_advice;

TEST(Evidence, ALateAdviceIsCorrected) {
    NEEDS_HUGE_PAGES;
    EvidenceNode node(-1);
    const BagIndex big = node.big_filled(8);
    node.small(1);
    before_advice = [&] { EXPECT_TRUE(node.pages.return_pages(node.at(big), os::page_size(), false)); };
    EXPECT_TRUE(node.pages.learn_from(big));
    node.check(big, big + 8 * huge_bags);
    EXPECT_EQ(node.advice(big), "nh");
}

TEST(Evidence, AdviceAndMarksAgreeWhateverHappens) {
    NEEDS_HUGE_PAGES;
    std::mt19937 random(20261126);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    EvidenceNode node(0);
    struct Run {
        BagIndex first;
        std::uint32_t bags;
        bool big;
    };
    std::vector<Run> runs;
    for (int i = 0; i < 600; ++i) {
        const std::uint32_t bags = 1 + below(6 * huge_bags);
        if (below(5) < 2 && !runs.empty()) {
            const Run run = runs[below(runs.size())];
            std::erase_if(runs, [&](const Run& r) { return r.first == run.first; });
            if (run.big) node.free_big(run.first);
            else node.pages.give(run.first);
        } else if (below(4) == 0 && !runs.empty()) {
            if (Run& run = runs[below(runs.size())]; run.big && node.pages.resize(run.first, bags)) run.bags = bags;
        } else if (below(6) == 0 && !runs.empty() && runs.back().big) {
            Run& run = runs.back();
            const BagIndex to =
                node.pages.take_to_move(run.bags + bags, huge_bags, run.bags, node.pages.learn_from(run.first));
            ASSERT_TRUE(node.pages.move(run.first, to, run.bags));
            run = {to, run.bags + bags, true};
        } else {
            const bool big = below(2) != 0;
            const BagIndex run = big ? node.take(bags) : node.small(bags);
            if (below(2) != 0) node.fill(run, bags);
            runs.push_back({run, bags, big});
        }
        if (i % 100 == 99) node.pages.purge(true);
        node.pages.validate();
    }
    for (const Run& run : runs)
        for_each_stretch(node.pages.region(), BagMark::normal, run.first, run.first + run.bags,
                         [&](BagIndex b, BagIndex, bool normal) {
                             EXPECT_EQ(node.advice(b), normal ? "nh" : "hg");
                             return true;
                         });
}

bool is_resident(const char* p) {
    unsigned char state = 0;
    EXPECT_EQ(mincore(const_cast<char*>(p), 4096, &state), 0);
    return (state & 1) != 0;
}

// Strict binding has promised them.
TEST(Evidence, ACopyUnderStrictBindingPutsAllPagesThere) {
    Node node(0, 512 * MiB, 0, false, true);
    const BagIndex from = node.take(256), to = node.pages.take_to_move(512, 1, 256, false);
    ASSERT_TRUE(node.pages.move(from, to, 256));
    for (std::uint32_t b = 0; b < 256; b += 16) EXPECT_TRUE(is_resident(node.at(to + b))) << b;
}

// realloc of a sparse object, to memory that was never used or held data.
TEST(Evidence, ACopyWritesOnlyWhatIsNotZero) {
    Node node(-1);
    constexpr Bytes bytes = 40 * bag_bytes - 3;
    std::vector<char> source(bytes);
    for (const bool dirty : {false, true}) {
        const BagIndex to = node.take(40);
        if (dirty) {
            node.fill(to, 40);
            node.pages.give(to);
            ASSERT_EQ(node.take(40), to);
        }
        for (const Bytes at : {Bytes{0}, Bytes{4095}, 5 * bag_bytes + 1, 30 * bag_bytes, bytes - 1}) source[at] = 'x';
        node.at(to)[bytes] = 'z';
        // A write to the page would end the test; a discard is no write.
        char* const unwritten = node.at(to) + 8 * bag_bytes;
        const Bytes its_bytes = os::page_size() <= bag_bytes ? bag_bytes : 0;
        ASSERT_EQ(mprotect(unwritten, its_bytes, PROT_READ), 0);
        node.pages.copy_to(to, source.data(), bytes);
        ASSERT_EQ(mprotect(unwritten, its_bytes, PROT_READ | PROT_WRITE), 0);
        EXPECT_EQ(node.at(to)[bytes], 'z') << "the hardened library's tail may be there";
        EXPECT_TRUE(std::equal(source.begin(), source.end(), node.at(to))) << dirty;
        std::fill(source.begin(), source.end(), 'y');
        node.pages.copy_to(to, source.data(), bytes);
        EXPECT_TRUE(std::equal(source.begin(), source.end(), node.at(to))) << dirty;
        std::fill(source.begin(), source.end(), '\0');
        node.pages.give(to);
    }
}

}  // namespace
}  // namespace numalloc

extern "C" {
void __real__ZN8numalloc2os11advise_hugeEPvmNS0_9HugePagesE(void* p, numalloc::Bytes bytes,
                                                            numalloc::os::HugePages mode);
void __wrap__ZN8numalloc2os11advise_hugeEPvmNS0_9HugePagesE(void* p, numalloc::Bytes bytes,
                                                            numalloc::os::HugePages mode) {
    // Once, and not again for what it does.
    if (const auto first = std::exchange(numalloc::before_advice, nullptr)) first();
    __real__ZN8numalloc2os11advise_hugeEPvmNS0_9HugePagesE(p, bytes, mode);
}
}
