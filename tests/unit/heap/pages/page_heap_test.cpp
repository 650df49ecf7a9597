// The bags of one node against a model: every bag has one owner, freed runs coalesce, memory
// that is said to be zero is, and what went back to the OS is gone.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "support/made_up_clock.h"
#include "support/made_up_node.h"

namespace numalloc {
namespace {

using testing::Node;

// The owner of every bag, as a program knows it.
class Model {
public:
    struct Run {
        BagIndex first;
        std::uint32_t bags;
        std::uint8_t mark;
        BagState state;
    };
    Model(Node& node, unsigned seed) : node_(node), owned_(node.pages.region().end_bag().value, false), random_(seed) {}

    void take() {
        std::uint32_t bags = 1 + random_() % (random_() % 8 == 0 ? 200 : 10);
        const std::uint32_t alignment = random_() % 4 == 0 ? 1u << (random_() % 8) : 1;
        const BagState state = random_() % 4 == 0 ? BagState::small : BagState::big;
        const BagIndex first = node_.pages.take(bags, alignment, state);
        if (first == PageHeap::none) return;
        ASSERT_EQ(address_of(node_.at(first)) % (alignment * bag_bytes), 0u);
        if (state == BagState::big) {
            bags = PageHeap::whole_pages(bags);
            ASSERT_EQ(address_of(node_.at(first)) % os::page_size(), 0u);
        }
        ASSERT_EQ(node_.pages.big_run(first), state == BagState::big ? bags : 0);
        claim(first.value, bags);
        // What is not marked is zero already, and clear() sees to the rest.
        for (std::uint32_t b = first.value; b < first.value + bags; ++b)
            if (node_.dirty(BagIndex{b}, 1) == 0) expect_zero(BagIndex{b}, 1);
        if (state == BagState::big && random_() % 4 == 0) {
            node_.pages.clear(first, bags * bag_bytes);
            expect_zero(first, bags);
        }
        runs_.push_back({first, bags, write(first, 0, bags), state});
    }
    void give() {
        if (runs_.empty()) return;
        const std::size_t i = random_() % runs_.size();
        check(runs_[i]);
        disown(runs_[i].first.value, runs_[i].bags);
        node_.pages.give(runs_[i].first);
        ASSERT_EQ(node_.pages.big_run(runs_[i].first), 0u);
        runs_[i] = runs_.back();
        runs_.pop_back();
    }
    void resize() {
        if (runs_.empty()) return;
        Run& run = runs_[random_() % runs_.size()];
        if (run.state != BagState::big) return;
        const std::uint32_t bags = PageHeap::whole_pages(1 + random_() % (run.bags + 20));
        const bool done = node_.pages.resize(run.first, bags);
        check({run.first, std::min(bags, run.bags), run.mark, run.state});  // whatever it said, what was there stands
        if (bags <= run.bags) {
            ASSERT_TRUE(done);
        }
        if (!done) return;
        ASSERT_EQ(node_.pages.big_run(run.first), bags);
        if (bags > run.bags) claim(run.first.value + run.bags, bags - run.bags);
        else disown(run.first.value + bags, run.bags - bags);
        run.bags = bags;
        run.mark = write(run.first, 0, bags);
    }
    void give_everything() {
        while (!runs_.empty()) give();
    }
    std::uint64_t bags_in_use(BagState state) const {
        std::uint64_t sum = 0;
        for (const Run& run : runs_) sum += run.state == state ? run.bags : 0;
        return sum;
    }
    std::uint64_t big_objects() const {
        return static_cast<std::uint64_t>(
            std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.state == BagState::big; }));
    }
    unsigned random() { return random_(); }

private:
    void claim(std::uint32_t from, std::uint32_t bags) {
        for (std::uint32_t b = from; b < from + bags; ++b) {
            ASSERT_FALSE(owned_[b]) << "bag " << b << " has two owners";
            owned_[b] = true;
        }
    }
    void disown(std::uint32_t from, std::uint32_t bags) {
        for (std::uint32_t b = from; b < from + bags; ++b) owned_[b] = false;
    }
    // One word at both ends of each bag: enough to see a wrong owner, cheap enough for millions.
    std::uint8_t write(BagIndex first, std::uint32_t from, std::uint32_t bags) {
        const auto mark = static_cast<std::uint8_t>(1 + random_() % 255);
        for (std::uint32_t b = from; b < bags; ++b) {
            std::memset(node_.at(first) + b * bag_bytes, mark, 8);
            std::memset(node_.at(first) + (b + 1) * bag_bytes - 8, mark, 8);
        }
        return mark;
    }
    void check(Run run) {
        for (std::uint32_t b = 0; b < run.bags; ++b)
            for (const Bytes offset : {b * bag_bytes, (b + 1) * bag_bytes - 1})
                ASSERT_EQ(static_cast<std::uint8_t>(node_.at(run.first)[offset]), run.mark);
    }
    void expect_zero(BagIndex first, std::uint32_t bags) {
        // Equal to itself a byte further, and the first byte zero: all are.
        const char* p = node_.at(first);
        ASSERT_EQ(*p, 0) << "said to be zero";
        ASSERT_EQ(std::memcmp(p, p + 1, bags * bag_bytes - 1), 0) << "said to be zero";
    }

    Node& node_;
    std::vector<bool> owned_;
    std::vector<Run> runs_;
    std::mt19937 random_;
};

#if defined(__SANITIZE_THREAD__)
constexpr int steps = 1'500;
#else
constexpr int steps = 12'000;
#endif

class PageHeapRandom : public ::testing::TestWithParam<int> {};

TEST_P(PageHeapRandom, AgreesWithTheModel) {
    Node node(GetParam(), 64 * MiB);
    Model model(node, 11);
    for (int i = 0; i < steps; ++i) {
        if (i % 4 == 0) testing::advance_clock(1);
        const unsigned what = model.random() % 16;
        if (what < 6) model.take();
        else if (what < 12) model.give();
        else if (what < 15) model.resize();
        else if (i % 64 == 0) node.pages.purge(model.random() % 2 == 0);
        if (HasFatalFailure()) return;
        if (i % 128 == 0) {
            node.pages.validate();
            ASSERT_EQ(node.pages.use().big_bags, model.bags_in_use(BagState::big));
            ASSERT_EQ(node.pages.use().small_bags, model.bags_in_use(BagState::small));
            ASSERT_EQ(node.pages.use().big_objects, model.big_objects());
        }
    }
    model.give_everything();
    node.pages.validate();
    EXPECT_EQ(node.pages.use().big_bags, 0u);
    EXPECT_EQ(node.pages.use().big_objects, 0u);
    // All coalesced: the whole node fits one object again.
    node.pages.purge(true);
    EXPECT_EQ(node.pages.use().dirty_bags, 0u);
    const BagIndex all = node.take(static_cast<std::uint32_t>(node.room()));
    EXPECT_NE(all, PageHeap::none);
    EXPECT_EQ(node.dirty(all, static_cast<std::uint32_t>(node.room())), 0u);
}
INSTANTIATE_TEST_SUITE_P(PurgeDelay, PageHeapRandom, ::testing::Values(-1, 0, 5, 1000), [](const auto& p) {
    return p.param < 0 ? std::string("Never") : "After" + std::to_string(p.param);
});

#if !defined(__SANITIZE_THREAD__)  // which knows only what the kernel places
// Nothing keeps other mappings out of the region. They are stepped over, and left alone.
TEST(PageHeap, OtherMappingsInTheRegionAreSteppedOver) {
    constexpr Bytes room = 512 * MiB;
    constexpr Bytes obstacle = 3 * MiB;
    Node node(1000, SpaceOptions{.stride = smallest_stride, .bags = room});
    std::vector<char*> obstacles;
    const std::uint32_t first = node.pages.region().first_bag().value;
    for (std::uint32_t b = first + 40; b < first + (room >> bag_shift); b += 700 + b % 97) {
        obstacles.push_back(node.at(BagIndex{align_down(b, PageHeap::whole_pages(1))}));
        ASSERT_EQ(os::map_at(obstacles.back(), obstacle), os::Mapped::done);
        std::memset(obstacles.back(), 0x5A, obstacle);
    }
    ASSERT_GT(obstacles.size(), 15u);
    Model model(node, 12);
    for (int i = 0; i < steps; ++i) {
        const unsigned what = model.random() % 16;
        if (what < 8) model.take();
        else if (what < 11) model.give();
        else model.resize();
        if (HasFatalFailure()) return;
        if (i % 128 == 0) node.pages.validate();
    }
    // The heap came to the end of its region, past all of them.
    EXPECT_GT(node.pages.region().committed(), first + (room * 9 / 10 >> bag_shift));
    model.give_everything();
    node.pages.validate();
    EXPECT_EQ(node.pages.use().big_bags, 0u);
    for (const char* p : obstacles)
        for (Bytes i = 0; i < obstacle; i += 4 * KiB) ASSERT_EQ(p[i], 0x5A);
}
#endif

TEST(PageHeap, FreedNeighboursCoalesceFromEitherSide) {
    for (const int order : {0, 1, 2, 3, 4, 5}) {
        static constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        Node node(-1);
        BagIndex run[3];
        for (auto& r : run) r = node.take(5);
        const BagIndex end = node.take(1);
        for (const int i : orders[order]) node.pages.give(run[i]);
        EXPECT_EQ(node.take(15), run[0]);
        EXPECT_NE(end, PageHeap::none);
    }
}

// A limit on address space, a core dump and locked memory count what is mapped.
TEST(PageHeap, TheTopLeavesTheAddressSpaceOnceItIsClean) {
    Node node(0);  // clean at once
    const BagIndex low = node.take_filled(40);
    const BagIndex high = node.take_filled(2000);
    const std::uint64_t grown = node.pages.region().committed();
    node.pages.give(low);
    EXPECT_EQ(node.pages.region().committed(), grown);
    node.pages.give(high);
    EXPECT_LT(node.pages.region().committed(), low.value + 200u);
    node.pages.validate();
    EXPECT_EQ(node.take(2000), low);
    EXPECT_EQ(node.dirty(low, 2000), 0u);
    node.fill(low, 2000);
    node.pages.validate();
}

TEST(PageHeap, FirstFitTakesTheLowestHole) {
    Node node(-1);
    const BagIndex hole4 = node.take(4), wall1 = node.take(1), hole10 = node.take(10), wall2 = node.take(1),
                   hole3 = node.take(3), wall3 = node.take(1);
    for (const BagIndex hole : {hole10, hole3, hole4}) node.pages.give(hole);
    EXPECT_EQ(node.take(5), hole10);
    EXPECT_EQ(node.take(3), hole4);
    EXPECT_EQ(node.take(3).value, hole10.value + PageHeap::whole_pages(5));
    (void)wall1, (void)wall2, (void)wall3;
}

// Where the lowest hole has no pages, what was freed last and has some serves a big object, but is not
// broken up for a bag of small ones.
TEST(PageHeap, ResidentMemoryServesBigObjectsFirst) {
    Node node(-1);
    const BagIndex low = node.take_filled(8), wall1 = node.take_filled(1), high = node.take_filled(8),
                   wall2 = node.take_filled(1);
    node.pages.give(low);
    node.pages.purge(true);
    node.pages.give(high);
    const BagIndex small = node.pages.take(1, 1, BagState::small, ClassId{1});
    EXPECT_EQ(small, low);
    EXPECT_EQ(node.take(2), high);
    (void)wall1, (void)wall2;
}

// A hole of just the length serves an object that must be aligned, where its place is right.
TEST(PageHeap, AHoleThatFitsExactlyServesAlignedObjects) {
    Node node(-1);
    constexpr std::uint32_t alignment = 16;
    const auto take = [&](std::uint32_t bags) { return node.pages.take(bags, alignment, BagState::big); };
    const BagIndex aligned = take(32), wall1 = node.take(6), unaligned = node.take(40), wall2 = node.take(2),
                   last = take(32), wall3 = node.take(1);
    ASSERT_NE(address_of(node.at(unaligned)) % (alignment * bag_bytes), 0u);
    for (const BagIndex hole : {last, unaligned, aligned}) node.pages.give(hole);
    EXPECT_EQ(take(32), aligned);
    EXPECT_EQ(take(32), last) << "the one before it is long enough, but lies badly";
    node.pages.give(aligned);
    node.pages.purge(true);
    node.pages.give(last);
    EXPECT_EQ(take(16), last) << "its pages are there";
    node.pages.validate();
    (void)wall1, (void)wall2, (void)wall3;
}

TEST(PageHeap, AlignedObjectsBeginInTheRunAtTheTop) {
    Node node(-1);
    const BagIndex low = node.pages.take(32, 16, BagState::big);
    node.fill(low, 32);
    node.pages.give(low);
    EXPECT_EQ(node.pages.take(64, 16, BagState::big), low);
    EXPECT_EQ(node.dirty(low, 64), 32u);
    node.pages.validate();
}

TEST(PageHeap, GrowsInPlaceWhereTheNeighbourIsFree) {
    Node node(-1);
    const BagIndex a = node.take_filled(4), b = node.take_filled(4), c = node.take_filled(1);
    EXPECT_FALSE(node.pages.resize(a, 5));
    EXPECT_EQ(node.pages.big_run(a), 4u);
    node.pages.give(b);
    EXPECT_FALSE(node.pages.resize(a, 9));
    EXPECT_TRUE(node.pages.resize(a, 7));
    EXPECT_EQ(node.at(a)[4 * bag_bytes - 1], char(0xEE));
    EXPECT_TRUE(node.pages.resize(a, 8));
    EXPECT_TRUE(node.pages.resize(a, 1));
    const std::uint32_t page = PageHeap::whole_pages(1);
    EXPECT_EQ(node.take(8 - page).value, a.value + page);
    EXPECT_TRUE(node.pages.resize(c, 100)) << "above it nothing was ever used";
    EXPECT_FALSE(node.pages.resize(c, static_cast<std::uint32_t>(node.room()))) << "more than the node has";
    node.pages.validate();
}

// What was cut off a free run is in use at once: nobody who frees what lies beside it takes it for free.
TEST(PageHeap, ManyThreadsGrowInPlaceBesideEachOther) {
    Node node(-1);
    std::atomic<unsigned> wrong{0};
    const auto work = [&](unsigned seed) {
        std::minstd_rand random(seed);
        std::vector<BagIndex> mine(8, PageHeap::none);
        for (int i = 0; i < 30000; ++i) {
            BagIndex& run = mine[random() % mine.size()];
            const std::uint32_t bags = PageHeap::whole_pages(1 + random() % 40);
            if (run == PageHeap::none) {
                run = node.pages.take(bags, 1, BagState::big);
            } else if (random() % 4 == 0) {
                node.pages.give(run);
                run = PageHeap::none;
            } else if (node.pages.resize(run, bags) && node.pages.big_run(run) != bags) {
                ++wrong;
            }
        }
        for (const BagIndex run : mine)
            if (run != PageHeap::none) node.pages.give(run);
    };
    std::vector<std::thread> threads;
    for (unsigned t = 1; t <= 4; ++t) threads.emplace_back(work, t);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(node.pages.use().big_bags, 0u);
    node.pages.validate();
}

TEST(PageHeap, AFullNodeSaysSoAndGoesOn) {
    Node node(-1, 32 * MiB);
    std::vector<BagIndex> runs;
    for (BagIndex run = node.take(7); run != PageHeap::none; run = node.take(7)) runs.push_back(run);
    const std::uint32_t length = PageHeap::whole_pages(7);
    EXPECT_GT(runs.size() * length, node.room() - length);
    EXPECT_EQ(node.take(~std::uint32_t{0} - 64), PageHeap::none);
    EXPECT_EQ(node.pages.take(1, 1u << 26, BagState::big), PageHeap::none);
    node.pages.validate();
    for (const BagIndex run : runs) node.pages.give(run);
    node.pages.validate();
    EXPECT_NE(node.take(static_cast<std::uint32_t>(node.room() - 1)), PageHeap::none);
}

TEST(PageHeap, OnlyTheFirstBagOfABigObjectIsOne) {
    Node node(-1);
    const BagIndex run = node.take(3);
    const BagIndex small = node.pages.take(2, 1, BagState::small);
    EXPECT_EQ(node.pages.big_run(run), PageHeap::whole_pages(3));
    EXPECT_EQ(node.pages.big_run(BagIndex{std::uint64_t{run.value} + 1}), 0u);
    EXPECT_EQ(node.pages.big_run(BagIndex{std::uint64_t{run.value} + 2}), 0u);
    EXPECT_EQ(node.pages.big_run(small), 0u);
    EXPECT_EQ(node.pages.big_run(BagIndex{0u}), 0u) << "metadata";
    EXPECT_EQ(node.pages.big_run(BagIndex{std::uint64_t{node.pages.region().end_bag().value} - 1}), 0u) << "never used";
    EXPECT_EQ(node.pages.use().small_bags, 2u);
    EXPECT_EQ(node.pages.use().big_bags, PageHeap::whole_pages(3));
}

TEST(PageHeap, UsedMemoryIsNotCalledZero) {
    Node node(-1);
    const BagIndex run = node.take(8);
    EXPECT_EQ(node.dirty(run, 8), 0u);
    node.fill(run, 8);
    node.pages.give(run);
    EXPECT_EQ(node.take(8), run);
    EXPECT_EQ(node.dirty(run, 8), 8u);
    // Half of it new: not zero as a whole either.
    node.pages.give(run);
    EXPECT_EQ(node.take(16), run);
    EXPECT_EQ(node.dirty(run, 16), 8u);
}

// Blocks as long as their alignment: every hole is exactly right, and is found, whatever else lies about.
TEST(PageHeap, AnAlignedRequestTakesTheHoleThatFitsExactly) {
    Node node(-1);
    constexpr std::uint32_t length = 64;
    std::vector<BagIndex> runs;
    for (int i = 0; i < 40; ++i) {
        runs.push_back(node.pages.take(length, length, BagState::big));
        if (i % 4 == 0) (void)node.take(7);
    }
    const std::uint64_t committed = node.pages.region().committed();
    std::mt19937 random(3);
    for (int i = 0; i < 400; ++i) {
        BagIndex& run = runs[random() % runs.size()];
        node.pages.give(run);
        const BagIndex again = node.pages.take(length, length, BagState::big);
        ASSERT_LE(again, run) << "a hole was overlooked";
        run = again;
    }
    EXPECT_EQ(node.pages.region().committed(), committed);
    node.pages.validate();
}

#if defined(NUMALLOC_CHECKS) && !defined(__SANITIZE_THREAD__)
// Entries that a request for 1 MiB and its free look at.
std::uint64_t steps_of_a_pair(Node& node) {
    constexpr int pairs = 100;
    const std::uint64_t before = steps_taken.load(std::memory_order_relaxed);
    for (int i = 0; i < pairs; ++i) node.pages.give(node.take(32));
    return (steps_taken.load(std::memory_order_relaxed) - before) / pairs;
}

// A past peak leaves a free run below what is in use. It costs nothing, however long it is, resting or clean.
TEST(PageHeap, APastPeakCostsNothing) {
    std::uint64_t small = 0;
    for (const Bytes peak : {256 * MiB, 1 * GiB, 64 * GiB, 256 * GiB}) {
        Node node(20000, SpaceOptions{.stride = 1 * TiB, .bags = peak + 1 * GiB});
        const Bytes piece = min_of(peak / 4, 1 * GiB);
        std::vector<BagIndex> runs;
        for (Bytes taken = 0; taken < peak; taken += piece) {
            runs.push_back(node.take(static_cast<std::uint32_t>(piece >> bag_shift)));
            ASSERT_NE(runs.back(), PageHeap::none);
        }
        const BagIndex wall = node.take(1);
        ASSERT_NE(wall, PageHeap::none);
        for (const BagIndex run : runs) node.pages.give(run);
        node.pages.validate();
        const std::uint64_t steps = steps_of_a_pair(node);
        if (small == 0) small = steps;
        EXPECT_LE(steps, small + small / 5) << (peak >> 30) << " GiB";
    }
}

// Nor do many free runs cost more than a tree of them is deep.
TEST(PageHeap, ManyHolesCostTheirLogarithm) {
    Node node(-1, 2 * GiB);
    std::vector<BagIndex> runs;
    for (int i = 0; i < 20'000; ++i) runs.push_back(node.take(1 + i % 3));
    for (std::size_t i = 0; i < runs.size(); i += 2) node.pages.give(runs[i]);
    EXPECT_LE(steps_of_a_pair(node), 600u);
}
#endif

// Also if what is left of long dirty memory behind whole pieces is short.
TEST(PageHeapClear, ClearsLongMemoryOfAnyLength) {
    Node node(-1);
    constexpr std::uint32_t mib32 = 32 * MiB / bag_bytes;
#if defined(__SANITIZE_THREAD__)  // to which each byte is a call
    const std::initializer_list<std::uint32_t> lengths{1, 127};
#else
    const std::initializer_list<std::uint32_t> lengths{0, 1, 2, 3, 4, 5, 127};
#endif
    for (const std::uint32_t more : lengths) {
        for (const bool filled : {true, false}) {
            const BagIndex run = node.take(mib32 + more);
            if (filled) node.fill(run, mib32 + more);
            else node.at(run)[3 * MiB] = node.at(run)[(mib32 + more) * bag_bytes - 1] = 'x';
            node.pages.give(run);
            ASSERT_EQ(node.take(mib32 + more), run);
            ASSERT_EQ(node.dirty(run, mib32 + more), mib32 + more);
            const Bytes bytes = (mib32 + more) * bag_bytes;
            node.pages.clear(run, bytes);
            EXPECT_EQ(std::count(node.at(run), node.at(run) + bytes, 0), long(bytes)) << more << filled;
            node.pages.give(run);
        }
    }
}

// calloc of memory that was hardly used before, as a large hash table is. A write to the page without access would end
// the test.
TEST(PageHeapClear, WritesToNoPageThatIsZero) {
    Node node(-1);
    for (const std::uint32_t bags : {17U, 20U, 100U, 200U}) {
        const BagIndex run = node.take(bags);
        for (Bytes b = 0; b < bags; ++b) node.at(run)[b * bag_bytes + b % 7 * 4096] = 'x';
        node.pages.give(run);
        ASSERT_EQ(node.take(bags), run);
        char* const unwritten = node.at(run) + bags / 2 * bag_bytes + 7 * Bytes{4096};
        const auto allow = [&](int access) { return os::page_size() > 4096 || mprotect(unwritten, 4096, access) == 0; };
        ASSERT_TRUE(allow(PROT_READ));
        node.pages.clear(run, bags * bag_bytes);
        ASSERT_TRUE(allow(PROT_READ | PROT_WRITE));
        EXPECT_EQ(std::count(node.at(run), node.at(run) + bags * bag_bytes, 0), long(bags * bag_bytes)) << bags;
        node.pages.give(run);
    }
}

}  // namespace
}  // namespace numalloc
