// The objects of one class on one node: from whom they come, in which order, and where they go.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/space/mark.h"
#include "support/made_up_class_heap.h"

namespace numalloc {
namespace {

using ClassHeapTest = testing::ClassHeapFixture;

TEST_F(ClassHeapTest, FreshObjectsLieInARowAndReadAsZero) {
    const ClassId c = class_of(48);
    const Supply first = take(c, 10);
    ASSERT_NE(first.fresh, nullptr);
    EXPECT_EQ(first.list, nullptr);
    EXPECT_EQ(first.count, 10u);
    EXPECT_TRUE(first.zeroed);
    EXPECT_EQ(address_of(first.fresh) % bag_bytes, 0u);
    const Supply second = take(c, 5);
    EXPECT_EQ(second.fresh, static_cast<char*>(first.fresh) + 10 * 48);
    const BagIndex bag = node.pages.region().bag_of(first.fresh);
    EXPECT_EQ(node.pages.region().class_at(bag), c);
    EXPECT_EQ(of(c).use().taken, 15u);
    EXPECT_EQ(of(c).use().bags, 1u);
}

TEST_F(ClassHeapTest, ABagThatServedBeforeIsNotCalledZero) {
    const BagIndex used = node.take_filled(1);
    node.pages.give(used);
    const Supply s = take(class_of(64), 4);
    EXPECT_EQ(node.pages.region().bag_of(s.fresh), used);
    EXPECT_FALSE(s.zeroed);
}

TEST_F(ClassHeapTest, EveryClassCarvesItsBagsToTheLastObject) {
    for (unsigned n = 1; n < class_count; ++n) {
        const ClassId c{n};
        const ClassShape& shape = shape_of(c);
        std::set<Address> seen;
        const auto all = take_many(c, 2u * shape.objects + 1);
        for (void* p : all) {
            ASSERT_TRUE(seen.insert(address_of(p)).second);
            const BagIndex bag = node.pages.region().bag_of(p);
            ASSERT_EQ(node.pages.region().class_at(bag), c);
            ASSERT_EQ(ClassHeap::why_invalid(node.pages.region(), bag, c, p), nullptr);
        }
        for (auto i = seen.begin(); std::next(i) != seen.end(); ++i) ASSERT_GE(*std::next(i) - *i, shape.size);
        EXPECT_EQ(of(c).use().bags, 3u);
        of(c).give_to_bags(list_of(all));
        expect_nothing_held(c);
    }
}

TEST_F(ClassHeapTest, TheRingGivesTheNewestWhole) {
    const ClassId c = class_of(64);
    const auto a = take_many(c, 30), b = take_many(c, 20), rest = take_many(c, 800);
    put(c, list_of(a));
    put(c, list_of(b));
    EXPECT_EQ(of(c).use().ring, 50u);
    const Supply newest = take(c, 1);
    EXPECT_EQ(newest.count, 20u) << "whole, whatever was wanted";
    EXPECT_EQ(objects(c, newest), b);
    const Supply older = take(c, 1);
    EXPECT_EQ(objects(c, older), a);
    EXPECT_NE(take(c, 1).fresh, nullptr);
    (void)rest;
}

TEST_F(ClassHeapTest, RemoteCachesShortListsBecomeWholeBatches) {
    const ClassId c = class_of(64);
    const auto rest = take_many(c, 800);
    const std::uint32_t batch = shape_of(c).batch;
    auto all = take_many(c, batch);
    for (std::size_t i = 0; i < all.size(); i += 2)
        of(c).put(list_of({all.begin() + i, all.begin() + std::min(i + 2, all.size())}), ClassHeap::From::remote_cache);
    EXPECT_EQ(of(c).use().came_home, batch);
    validate(c);
    auto taken = objects(c, take(c, 1));
    std::sort(taken.begin(), taken.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(taken, all) << "by one hand-over";
}

TEST_F(ClassHeapTest, AFullRingSortsItsOldestIntoBags) {
    const ClassId c = class_of(1024);
    const ClassShape& shape = shape_of(c);
    ASSERT_GT(shape.ring, 1u);
    const auto rest = take_many(c, 2000);
    std::vector<std::vector<void*>> lists;
    for (unsigned i = 0; i <= shape.ring; ++i) lists.push_back(take_many(c, shape.batch));
    for (const auto& list : lists) put(c, list_of(list));
    EXPECT_EQ(of(c).use().ring, std::uint64_t{shape.batch} * shape.ring);
    validate(c);
    for (unsigned i = shape.ring; i > 0; --i) EXPECT_EQ(objects(c, take(c, 1)), lists[i]);
    // The first list is in the bags now, and comes before anything new.
    auto from_bags = take_many(c, shape.batch);
    std::sort(from_bags.begin(), from_bags.end());
    std::sort(lists[0].begin(), lists[0].end());
    EXPECT_EQ(from_bags, lists[0]);
}

TEST_F(ClassHeapTest, AnEmptyBagServesAnyClass) {
    const ClassId small = class_of(32), other = class_of(512);
    const auto all = take_many(small, shape_of(small).objects);
    const BagIndex bag = node.pages.region().bag_of(all[0]);
    of(small).give_to_bags(list_of(all));
    EXPECT_EQ(node.pages.region().class_at(bag), no_class);
    EXPECT_EQ(node.pages.use().small_bags, 0u);
    const Supply s = take(other, 1);
    EXPECT_EQ(node.pages.region().bag_of(s.fresh), bag);
    EXPECT_EQ(node.pages.region().class_at(bag), other);
}

// A program may copy bytes of a block that it never wrote to any other place.
TEST_F(ClassHeapTest, ABagThatLeavesItsClassHasNoMarks) {
    for (const Bytes size : {16, 48, 1008, 5 * 1024, 40 * 1024, 200 * 1024}) {
        const ClassId c = class_of(size);
        // The last bag is not carved to its end.
        const auto all = take_many(c, 3 * shape_of(c).objects + 1);
        for (void* o : all) make_freed(static_cast<Object*>(o), shape_of(c).size);
        of(c).give_to_bags(list_of(all));
        expect_nothing_held(c);
        for (void* o : all) ASSERT_FALSE(was_freed(static_cast<Object*>(o))) << size;
    }
}

TEST_F(ClassHeapTest, OneObjectHoldsItsBag) {
    const ClassId c = class_of(256);
    auto all = take_many(c, shape_of(c).objects);
    void* const kept = all[17];
    all.erase(all.begin() + 17);
    of(c).give_to_bags(list_of(all));
    validate(c);
    EXPECT_EQ(of(c).use().taken, 1u);
    EXPECT_EQ(of(c).use().bags, 1u);
    of(c).give_to_bags(list_of({kept}));
    expect_nothing_held(c);
}

// The bag being carved stays while it is short; drain() gives it back, but not while others use
// the class.
TEST_F(ClassHeapTest, DrainLetsGoOfTheCarvedBagWhenTheClassIsIdle) {
    const ClassId c = class_of(128);
    of(c).give_to_bags(list_of(take_many(c, 3)));
    EXPECT_EQ(of(c).use().bags, 1u);
    of(c).drain(true);
    EXPECT_EQ(of(c).use().bags, 1u) << "used since the last call";
    of(c).drain(true);
    EXPECT_EQ(of(c).use().bags, 0u);
    expect_nothing_held(c);
}

// Mostly empty bags: lists go past the ring, threads are told to keep little, and the bags are
// given back although nobody drains.
TEST_F(ClassHeapTest, SparseBagsAreNotHeldByTheRing) {
    const ClassId c = class_of(64);
    const ClassShape& shape = shape_of(c);
    auto all = take_many(c, 64u * shape.objects);
    std::shuffle(all.begin(), all.end(), std::mt19937(1));
    std::uint32_t keep = shape.batch;
    std::uint32_t first_keep = 0;
    while (all.size() > 100) {
        const std::size_t n = std::min<std::size_t>(shape.batch, all.size() - 100);
        const std::vector<void*> some(all.end() - long(n), all.end());
        all.resize(all.size() - n);
        keep = put(c, list_of(some));
        if (first_keep == 0) first_keep = keep;
    }
    EXPECT_EQ(first_keep, shape.batch) << "dense bags: keep a whole batch";
    EXPECT_LT(keep, shape.batch / 4);
    EXPECT_GE(keep, 1u);
    validate(c);
    put(c, list_of(all));
    const ClassUse use = of(c).use();
    EXPECT_EQ(use.taken, use.ring);
    EXPECT_LE(use.bags, 3u);
    expect_nothing_held(c);
}

TEST_F(ClassHeapTest, AFullNodeGivesNothing) {
    const std::uint64_t room = node.room();
    ASSERT_NE(node.take(static_cast<std::uint32_t>(room)), PageHeap::none);
    const Supply s = take(class_of(64), 8);
    EXPECT_EQ(s.count, 0u);
    EXPECT_EQ(s.fresh, nullptr);
    EXPECT_EQ(s.list, nullptr);
}

TEST_F(ClassHeapTest, InvalidPointersAreNamed) {
    for (const Bytes size : {48, 1024, 40 * 1024}) {
        const ClassId c = class_of(size);
        const Supply s = take(c, 1);
        char* p = static_cast<char*>(s.fresh);
        const auto why = [&](const char* pointer) {
            const Region& region = node.pages.region();
            return ClassHeap::why_invalid(region, region.bag_of(pointer), c, pointer);
        };
        EXPECT_EQ(why(p), nullptr);
        EXPECT_STREQ(why(p + 16), "points inside an object, not at its start");
        EXPECT_STREQ(why(p + size - 1), "points inside an object, not at its start");
        if (shape_of(c).objects > 1) {
            EXPECT_STREQ(why(p + shape_of(c).size), "was never allocated");
        }
    }
}

// Lists in the order of addresses, in its reverse and in pieces of both, over several bags that lie side
// by side: sorting follows rows by computing where the next object is.
TEST_F(ClassHeapTest, RowsGoBackToTheirBags) {
    for (const Bytes size : {16, 48, 1024, 20480}) {
        const ClassId c = class_of(size);
        const std::size_t bags = 3;
        std::vector<void*> all = take_many(c, bags * shape_of(c).objects);
        std::sort(all.begin(), all.end());
        const auto in_order = [](std::vector<void*>&) {};
        const auto reversed = [](std::vector<void*>& v) { std::reverse(v.begin(), v.end()); };
        const auto in_pieces = [](std::vector<void*>& v) {
            for (std::size_t i = 0, n = 1; i < v.size(); i += n, n = n % 7 + 1)
                if (n % 2 == 0) std::reverse(v.begin() + long(i), v.begin() + long(std::min(i + n, v.size())));
        };
        const auto one_missing = [](std::vector<void*>& v) {
            std::rotate(v.begin() + long(v.size() / 2), v.begin() + long(v.size() / 2) + 1, v.end());
        };
        const auto put_and_take = [&](auto&& arrange) {
            std::vector<void*> list = all;
            arrange(list);
            // All but one of each bag, so that the bags stay and can be looked into.
            std::vector<void*> kept;
            std::set<Bytes> seen;
            std::erase_if(list, [&](void* o) {
                const bool keep = seen.insert(node.pages.region().head_of(bag_of(o)).value).second;
                if (keep) kept.push_back(o);
                return keep;
            });
            of(c).give_to_bags(list_of(list));
            validate(c);
            EXPECT_EQ(of(c).use().taken, kept.size());
            std::vector<void*> again = take_many(c, list.size());
            again.insert(again.end(), kept.begin(), kept.end());
            std::sort(again.begin(), again.end());
            ASSERT_EQ(again, all) << size;
        };
        put_and_take(in_order);
        put_and_take(reversed);
        put_and_take(in_pieces);
        put_and_take(one_missing);
        of(c).give_to_bags(list_of(all));
        expect_nothing_held(c);
    }
}

using ClassHeapDeathTest = ClassHeapTest;

// The object that was freed last lies in the middle of a row, or the row is longer than what is out.
// The bag is gone, and its entry may be anything.
TEST_F(ClassHeapDeathTest, AListOfABagThatIsGoneIsSeen) {
    const ClassId c = class_of(64);
    auto all = take_many(c, shape_of(c).objects);
    auto* const stale = static_cast<Object*>(all[3]);
    of(c).give_to_bags(list_of(all));
    ASSERT_EQ(of(c).use().bags, 0u);
    stale->next = nullptr;
    for (int i = 0; i < 2; ++i) EXPECT_DEATH(of(c).put({stale, 1}), "was freed twice");
    EXPECT_DEATH(of(c).give_last({stale, 1}), "was freed twice");
}

TEST_F(ClassHeapDeathTest, ASecondFreeInARowIsSeen) {
    const ClassId c = class_of(64);
    std::vector<void*> all = take_many(c, 100);
    std::sort(all.begin(), all.end());
    const auto put_row = [&](long from, long to, bool up) {
        std::vector<void*> row(all.begin() + from, all.begin() + to);
        if (!up) std::reverse(row.begin(), row.end());
        of(c).give_to_bags(list_of(row));
    };
    of(c).give_to_bags(list_of({all[20], all[90], all[50]}));
    of(c).give_to_bags(list_of({all[51]}));
    for (const bool up : {true, false}) {
        EXPECT_DEATH(put_row(45, 60, up), "was freed twice");
        EXPECT_DEATH(
            (put_row(52, 90, up), put_row(0, 20, up), put_row(21, 49, up), put_row(91, 99, up), put_row(52, 56, up)),
            "was freed twice");
    }
}

// A drain that came by between the mark and the list left a list that no later drain looked for.
TEST_F(ClassHeapTest, ADrainMissesNoListThatComesMeanwhile) {
    constexpr int rounds = 5000;
    const ClassId classes[] = {class_of(64), class_of(500'000)};
    std::vector<void*> held[2];  // the first of each keeps its class from being sparse
    for (unsigned k = 0; k < 2; ++k) held[k] = take_many(classes[k], k == 0 ? 3000 : 40);
    std::atomic<int> put_in{0}, drained_in{0};
    std::thread other([&] {
        for (int i = 1; i <= rounds; ++i) {
            while (put_in.load(std::memory_order_relaxed) < i) std::this_thread::yield();
            for (ClassId c : classes) of(c).drain(false);
            drained_in.store(i, std::memory_order_release);
        }
    });
    for (int i = 1; i <= rounds; ++i) {
        const ClassId c = classes[i % 2];
        const Batch list = list_of(take_many(c, 1));
        put_in.store(i, std::memory_order_relaxed);
        put(c, list);
        while (drained_in.load(std::memory_order_acquire) < i) std::this_thread::yield();
        of(c).drain(false);
        EXPECT_EQ(of(c).use().ring, 0u) << "round " << i << ", class of " << shape_of(c).size;
    }
    other.join();
    for (unsigned k = 0; k < 2; ++k) {
        of(classes[k]).give_to_bags(list_of(held[k]));
        of(classes[k]).drain(false);
        EXPECT_EQ(of(classes[k]).use().bags, 0u);
    }
}

TEST_F(ClassHeapTest, RandomListsOfManyClasses) {
    std::mt19937 random(9);
    const ClassId classes[] = {class_of(16),   class_of(80),     class_of(1024),
                               class_of(9000), class_of(40'000), class_of(500'000)};
    std::vector<void*> held[6];
    for (int i = 0; i < 20'000; ++i) {
        const unsigned k = random() % 6;
        const ClassId c = classes[k];
        if (random() % 2 == 0) {
            for (void* p : objects(c, take(c, 1 + random() % 64, random() % 4))) held[k].push_back(p);
        } else if (!held[k].empty()) {
            std::shuffle(held[k].end() - long(std::min<std::size_t>(held[k].size(), 300)), held[k].end(), random);
            const std::size_t n = 1 + random() % std::min<std::size_t>(held[k].size(), 200);
            const std::vector<void*> some(held[k].end() - long(n), held[k].end());
            held[k].resize(held[k].size() - n);
            const Batch list = list_of(some);
            if (random() % 4 == 0) of(c).give_to_bags(list);
            else put(c, list);
        }
        if (random() % 1000 == 0) of(c).drain(random() % 2 == 0);
        if (random() % 500 == 0) of(c).return_free_pages(1000U * static_cast<unsigned>(i));
        if (IdlePart part; random() % 10 == 0) of(c).return_idle_pages(static_cast<unsigned>(i), 100, part);
        const ClassUse use = of(c).use();
        ASSERT_EQ(use.taken, held[k].size() + use.ring);
        if (i % 500 == 0) validate(c);
    }
    for (unsigned k = 0; k < 6; ++k) {
        std::set<void*> distinct(held[k].begin(), held[k].end());
        ASSERT_EQ(distinct.size(), held[k].size());
        of(classes[k]).give_to_bags(list_of(held[k]));
        of(classes[k]).drain(false);
        validate(classes[k]);
    }
    EXPECT_EQ(node.pages.use().small_bags, 0u);
}

}  // namespace
}  // namespace numalloc
