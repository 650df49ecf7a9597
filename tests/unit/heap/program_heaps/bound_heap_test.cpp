// Heaps that a program binds to a node: where their objects lie, that they can be freed one by one
// from anywhere or all at once, and what remains.
#include "heap/program_heaps/bound_heap.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "heap/program_heaps/any_object.h"
#include "heap/thread/fork.h"
#include "support/in_child.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::in_child;
using testing::release;
using testing::run_on;

constexpr unsigned nodes = 4;

class BoundHeapTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(nodes); }
    void SetUp() override {
        bound_ = BoundHeap::create(NodeId{2});
        ASSERT_NE(bound_, nullptr);
    }
    void TearDown() override {
        if (bound_ != nullptr) destroy();
        testing::validate_heap();
    }
    void destroy() {
        bound_->destroy();
        bound_ = nullptr;
        EXPECT_EQ(bags_on(2), 0u);
    }
    void* allocate(Bytes n, Bytes alignment = 1) { return bound_->allocate(n, alignment).p; }
    static std::uint64_t bags_on(unsigned n) { return process_heap.node(NodeId{n})->pages.use().bound_bags; }
    static BoundHeap* heap_of(const void* p) {
        const Location at = locate(p);
        return at.found == Found::bound ? BoundHeap::of(at) : nullptr;
    }

    BoundHeap* bound_ = nullptr;
};

TEST_F(BoundHeapTest, ObjectsOfAllSizesLieOnTheNodeAndApart) {
    std::vector<std::pair<char*, Bytes>> objects;
    for (Bytes n = 1; n <= 4 * MiB; n = n < 2000 ? n + 7 : n * 5 / 4)
        for (int i = 0; i < 3; ++i) {
            auto* p = static_cast<char*>(allocate(n));
            ASSERT_NE(p, nullptr);
            ASSERT_EQ(process_heap.space().region_of(p), 2u);
            ASSERT_EQ(heap_of(p), bound_);
            ASSERT_GE(usable_size(p, "test"), n);
            std::memset(p, static_cast<int>(objects.size() % 251), n);
            objects.push_back({p, n});
        }
    bound_->validate();
    Bytes usable = 0;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        const auto [p, n] = objects[i];
        usable += usable_size(p, "test");
        for (Bytes at : {Bytes{0}, n / 2, n - 1}) ASSERT_EQ(static_cast<unsigned char>(p[at]), i % 251);
    }
    EXPECT_EQ(bound_->use().used, usable);
    EXPECT_EQ(bound_->use().held, bags_on(2) << bag_shift);
    destroy();
}

TEST_F(BoundHeapTest, ObjectsAreAlignedAsAsked) {
    for (Bytes alignment = 1; alignment <= 4 * MiB; alignment *= 2)
        for (Bytes n : {Bytes{1}, Bytes{100}, Bytes{40000}, Bytes{600 * KiB}})
            ASSERT_EQ(address_of(allocate(n, alignment)) % alignment, 0u) << n << " at " << alignment;
    bound_->validate();
}

TEST_F(BoundHeapTest, AnyThreadFreesThem) {
    std::vector<void*> objects;
    for (int i = 0; i < 4000; ++i) objects.push_back(allocate(Bytes{16} << i % 16));
    for (unsigned t = 0; t < nodes; ++t)
        run_on(t, [&] {
            for (std::size_t i = t; i < objects.size(); i += nodes) release(objects[i]);
        });
    bound_->validate();
    EXPECT_EQ(bound_->use().used, 0u);
    // Of the 12 classes up to 32 KiB, one empty bag each stays for the next object.
    EXPECT_LE(bound_->use().held, Bytes{12} * bag_bytes);
    void* p = allocate(48);
    run_on(2, [&] {
        release(testing::allocate(Bytes{48}));
        release(p);  // not into the list of a thread that runs on the very node
        EXPECT_NE(testing::allocate(Bytes{48}), p);
    });
}

TEST_F(BoundHeapTest, FreedObjectsAreUsedAgainAndFreshOnesReadAsZero) {
    const Allocation first = bound_->allocate(64, 1);
    const std::vector<char> zeros(64);
    EXPECT_TRUE(!first.zeroed || std::memcmp(first.p, zeros.data(), 64) == 0);
    std::memset(first.p, 1, 64);
    EXPECT_EQ(BoundHeap::free(locate(first.p), first.p), nullptr);
    const Allocation again = bound_->allocate(64, 1);
    EXPECT_EQ(again.p, first.p);
    EXPECT_FALSE(again.zeroed);
}

TEST_F(BoundHeapTest, RandomLife) {
    std::mt19937 random(7);
    std::vector<std::pair<void*, unsigned char>> held;
    for (int i = 0; i < 60000; ++i) {
        if (held.size() < 500 || random() % 2 == 0) {
            const Bytes n = Bytes{1} << random() % 18 | random() % 16;
            auto* p = static_cast<unsigned char*>(allocate(n));
            p[0] = p[n - 1] = static_cast<unsigned char>(i);
            held.push_back({p, static_cast<unsigned char>(i)});
        } else {
            std::swap(held[random() % held.size()], held.back());
            ASSERT_EQ(*static_cast<unsigned char*>(held.back().first), held.back().second);
            ASSERT_EQ(BoundHeap::free(locate(held.back().first), held.back().first), nullptr);
            held.pop_back();
        }
        if (held.size() > 1000) {
            bound_->reset();
            EXPECT_EQ(bound_->use().held, 0u);
            held.clear();
        }
        if (i % 5000 == 0) bound_->validate();
    }
    bound_->validate();
}

TEST_F(BoundHeapTest, ABigObjectGrowsAndShrinksInPlace) {
    void* p = allocate(1 * MiB);
    EXPECT_TRUE(BoundHeap::resize_big(locate(p), bags_for(3 * MiB)));
    EXPECT_EQ(usable_size(p, "test"), 3 * MiB);
    EXPECT_EQ(bound_->use().used, 3 * MiB);
    bound_->validate();
    EXPECT_TRUE(BoundHeap::resize_big(locate(p), bags_for(600 * KiB)));
    EXPECT_EQ(bound_->use().held, align_up(600 * KiB, max_of(bag_bytes, os::page_size())));
    bound_->validate();
}

TEST_F(BoundHeapTest, AnObjectOfOneBagGrowsInPlace) {
    auto* p = static_cast<char*>(bound_->allocate(100, 2 * bag_bytes).p);
    std::memset(p, 'a', 100);
    ASSERT_TRUE(BoundHeap::resize_big(locate(p), bags_for(1 * MiB)));
    EXPECT_EQ(usable_size(p, "test"), 1 * MiB);
    EXPECT_EQ(BoundHeap::of(locate(p + 1 * MiB - 1)), bound_);
    bound_->validate();
}

// A heap that is filled and emptied in a loop has its memory kept, as threads' objects do.
TEST_F(BoundHeapTest, ALoopKeepsItsMemory) {
    PageHeap& big = process_heap.node(NodeId{2})->pages;
    const auto round = [&] {
        for (int i = 0; i < 4096; ++i) std::memset(allocate(4 * KiB), 1, 4 * KiB);
        bound_->reset();
    };
    for (int i = 0; i < 4; ++i) round();
    const std::uint64_t before = big.use().purged_bags;
    EXPECT_GT(before, 0u) << "the first round is no loop yet";
    for (int i = 0; i < 4; ++i) round();
    EXPECT_EQ(big.use().purged_bags, before);
}

TEST_F(BoundHeapTest, HeapsAreApartAndOneEndsWithoutTheOther) {
    BoundHeap* other = BoundHeap::create(NodeId{2});
    std::set<void*> mine;
    for (int i = 0; i < 3000; ++i) {
        mine.insert(allocate(80));
        ASSERT_EQ(mine.count(other->allocate(80, 1).p), 0u);
    }
    other->destroy();
    for (void* p : mine) ASSERT_EQ(heap_of(p), bound_);
    bound_->validate();
}

TEST_F(BoundHeapTest, WhereTheNodeHasNoRoomTheNearestServes) {
    PageHeap& big = process_heap.node(NodeId{2})->pages;
    std::vector<BagIndex> taken;
    for (std::uint32_t bags = big.region().end_bag().value; bags > 0; bags /= 2)
        for (BagIndex run; (run = big.take(bags, 1, BagState::small)) != PageHeap::none;) taken.push_back(run);
    void* small = allocate(100);
    void* large = allocate(1 * MiB);
    for (void* p : {small, large}) {
        ASSERT_NE(p, nullptr);
        EXPECT_NE(process_heap.space().region_of(p), 2u);
        EXPECT_EQ(heap_of(p), bound_);
    }
    bound_->validate();
    release(large);
    EXPECT_EQ(bound_->use().used, usable_size(small, "test"));
    for (BagIndex run : taken) big.give(run);
    destroy();
    for (unsigned n = 0; n < nodes; ++n) EXPECT_EQ(bags_on(n), 0u);
}

TEST_F(BoundHeapTest, ThreadsShareOneHeap) {
    std::atomic<void*> slots[64] = {};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < nodes; ++t)
        threads.push_back(testing::thread_on(t, [&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 20000; ++i) {
                auto* p = static_cast<unsigned*>(allocate(Bytes{16} << random() % 13));
                *p = t;
                if (void* others = slots[random() % 64].exchange(p)) release(others);
            }
        }));
    for (std::thread& thread : threads) thread.join();
    bound_->validate();
    for (auto& slot : slots)
        if (void* p = slot.load()) release(p);
    EXPECT_EQ(bound_->use().used, 0u);
}

#if !defined(__SANITIZE_THREAD__)  // which has no fork in threaded programs
TEST_F(BoundHeapTest, AChildHasTheHeapWhole) {
    std::atomic<bool> stop{false};
    std::atomic<int> rounds{0};
    auto noise = testing::thread_on(1, [&] {
        for (; !stop; ++rounds) {
            BoundHeap* own = BoundHeap::create(NodeId{1});
            for (int i = 0; i < 100; ++i) release(allocate(300));
            (void)own->allocate(700 * KiB, 1);
            own->destroy();
        }
    });
    while (rounds < 10) std::this_thread::yield();
    for (int i = 0; i < 50; ++i) {
        const int status = in_child([&] {
            for (int k = 0; k < 1000; ++k) std::memset(allocate(300), 1, 300);
            bound_->validate();
            bound_->destroy();
            return true;
        });
        ASSERT_EQ(status, 0) << "fork " << i;
    }
    stop = true;
    noise.join();
}

// Whatever another thread was doing at the clone: the heap holds no run that reset() does not find, and no room under
// its limit is promised to a thread that the child does not have.
TEST_F(BoundHeapTest, AChildLosesNoMemoryOfAHeap) {
    constexpr Bytes block = 300 * KiB;
    bound_->set_limit(block + block / 2);
    std::atomic<bool> stop{false};
    std::atomic<int> rounds{0};
    auto noise = testing::thread_on(1, [&] {
        for (; !stop; ++rounds) {
            void* const p = allocate(block);
            const os::NoFork as_free_does;
            release(p);
        }
    });
    while (rounds < 10) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) {
        const int status = in_child([&] {
            bound_->reset();
            return bags_on(2) == 0 && allocate(block) != nullptr;
        });
        EXPECT_EQ(status, 0) << "fork " << i;
    }
    stop = true;
    noise.join();
}
#endif

// Another thread may give the bag to another heap, or back, after locate().
TEST_F(BoundHeapTest, WhetherItLiesSpreadIsToldWithoutItsHeap) {
    void* const p = allocate(300 * KiB);
    const Location at = locate(p);
    Bag& bag = at.owner->pages.region().bag(at.bag);
    BoundHeap* const heap = bag.bound.heap;
    bag.bound.heap = reinterpret_cast<BoundHeap*>(std::uintptr_t{16});
    EXPECT_FALSE(BoundHeap::lies_spread(at));
    bag.bound.heap = heap;
}

// Otherwise the first free of a block that lies there later would look like a second one.
TEST_F(BoundHeapTest, NoMarkStaysInABagThatLeaves) {
    std::vector<void*> objects(20'000);
    for (int round = 0; round < 6; ++round) {
        for (void*& p : objects) p = allocate(64);
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (round % 2 == 0 || i % 3 != 0) release(objects[i]);
        if (round % 2 != 0) bound_->reset();
    }
}

using BoundHeapDeathTest = BoundHeapTest;

TEST_F(BoundHeapDeathTest, WrongFreesEndTheProgram) {
    GTEST_FLAG_SET(death_test_style, "fast");
    run_on(2, [this] {
        auto* p = static_cast<char*>(allocate(64));
        auto* big = static_cast<char*>(allocate(1 * MiB));
        EXPECT_DEATH(release(p + 16), "invalid pointer in free.*points inside an object");
        EXPECT_DEATH(release(p + 6400), "was never allocated");
        EXPECT_DEATH(release(big + 64), "points inside an object");
        EXPECT_DEATH(release(big + bag_bytes), "points inside an object");
        EXPECT_DEATH((release(p), release(p)), "was freed already");
        EXPECT_DEATH((release(big), release(big)), "freed already");
        void* q = allocate(64);
        EXPECT_DEATH((release(p), release(q), release(q)), "was freed already");
        void* r = allocate(64);
        EXPECT_DEATH((release(p), release(q), release(p)), "was freed already");
        EXPECT_DEATH((release(p), release(q), usable_size(p, "realloc")),
                     "invalid pointer in realloc.*was freed already");
        EXPECT_DEATH((release(p), std::memset(p, 1, 16), allocate(64)), "was written to after it was freed");
        release(r);
        BoundHeap* other = BoundHeap::create(NodeId{2});
        void* gone = other->allocate(64, 1).p;
        other->destroy();
        EXPECT_DEATH(release(gone), "not an allocated object, or was freed already");
    });
}

}  // namespace
}  // namespace numalloc
