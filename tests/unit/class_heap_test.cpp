// The objects of one class on one node: from whom they come, in which order, and where they go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/node/class_heap.h"
#include "made_up_node.h"

namespace numalloc {
namespace {

using testing::Node;

class ClassHeapTest : public ::testing::Test {
protected:
    Supply take(ClassId c, std::uint32_t want, unsigned share = 0) {
        shares_->open(share);
        return of(c).take(want, share);
    }
    BagIndex bag_of(const void* p) const { return node.big.region().bag_of(p); }
    std::uint32_t put(ClassId c, SubList list) { return of(c).put(list); }
    ClassHeap of(ClassId c) { return {*shares_, node.big, c}; }

    // The objects of a supply, one by one.
    static std::vector<void*> objects(ClassId c, const Supply& s) {
        std::vector<void*> result;
        if (s.fresh != nullptr)
            for (std::uint32_t i = 0; i < s.count; ++i) result.push_back(static_cast<char*>(s.fresh) + Bytes{i} * shape_of(c).size);
        for (Object* o = s.list; o != nullptr; o = o->next) result.push_back(o);
        EXPECT_EQ(result.size(), s.count);
        return result;
    }
    static SubList list_of(const std::vector<void*>& objects) {
        SubList list;
        for (auto o = objects.rbegin(); o != objects.rend(); ++o) {
            static_cast<Object*>(*o)->next = list.head;
            list.head = static_cast<Object*>(*o);
            ++list.count;
        }
        return list;
    }
    // Exactly `count` objects, whatever it takes.
    std::vector<void*> take_many(ClassId c, std::size_t count, unsigned share = 0) {
        std::vector<void*> result;
        while (result.size() < count) {
            const Supply s = take(c, static_cast<std::uint32_t>(count - result.size()), share);
            EXPECT_GT(s.count, 0u);
            if (s.count == 0) break;
            for (void* o : objects(c, s)) result.push_back(o);
        }
        return result;
    }
    void validate(ClassId c) {
        of(c).validate();
        node.big.validate();
    }
    void expect_nothing_held(ClassId c) {
        of(c).drain(false);
        validate(c);
        const ClassUse use = of(c).use();
        EXPECT_EQ(use.taken, 0u);
        EXPECT_EQ(use.ring, 0u);
        EXPECT_EQ(use.bags, 0u);
        EXPECT_EQ(node.big.use().small_bags, 0u);
    }

    Node node{-1};

private:
    std::unique_ptr<ClassShares> shares_ = std::make_unique<ClassShares>();
};

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
    const BagIndex bag = node.big.region().bag_of(first.fresh);
    EXPECT_EQ(node.big.region().class_at(bag), c);
    EXPECT_EQ(of(c).use().taken, 15u);
    EXPECT_EQ(of(c).use().bags, 1u);
}

TEST_F(ClassHeapTest, ABagThatServedBeforeIsNotCalledZero) {
    const BagIndex used = node.take_filled(1);
    node.big.give(used);
    const Supply s = take(class_of(64), 4);
    EXPECT_EQ(node.big.region().bag_of(s.fresh), used);
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
            const BagIndex bag = node.big.region().bag_of(p);
            ASSERT_EQ(node.big.region().class_at(bag), c);
            ASSERT_EQ(ClassHeap::why_invalid(node.big.region(), c, p), nullptr);
        }
        for (auto i = seen.begin(); std::next(i) != seen.end(); ++i) ASSERT_GE(*std::next(i) - *i, shape.size);
        EXPECT_EQ(of(c).use().bags, 3u);
        of(c).put_into_bags(list_of(all));
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

TEST_F(ClassHeapTest, AFullRingSortsItsOldestIntoBags) {
    const ClassId c = class_of(1024);
    const ClassShape& shape = shape_of(c);
    ASSERT_GT(shape.ring, 1u);
    const auto rest = take_many(c, 2000);
    std::vector<std::vector<void*>> lists;
    for (unsigned i = 0; i <= shape.ring; ++i) lists.push_back(take_many(c, 8));
    for (const auto& list : lists) put(c, list_of(list));
    EXPECT_EQ(of(c).use().ring, 8u * shape.ring);
    validate(c);
    for (unsigned i = shape.ring; i > 0; --i) EXPECT_EQ(objects(c, take(c, 1)), lists[i]);
    // The first list is in the bags now, and comes before anything new.
    auto from_bags = take_many(c, 8);
    std::sort(from_bags.begin(), from_bags.end());
    std::sort(lists[0].begin(), lists[0].end());
    EXPECT_EQ(from_bags, lists[0]);
}

// More shares have no more in their rings together than twice what one has, but for a list each.
TEST_F(ClassHeapTest, TheRingsOfManySharesAreShorter) {
    const ClassId c = class_of(1024);
    const unsigned ring = shape_of(c).ring;
    const auto rest = take_many(c, 500);
    for (const unsigned shares : {1u, 2u, 4u, 8u, 16u}) {
        std::vector<std::vector<void*>> lists;
        for (unsigned s = 0; s < shares; ++s)
            for (unsigned i = 0; i < ring + 2; ++i) lists.push_back(take_many(c, 4, s));
        for (const auto& list : lists) put(c, list_of(list));
        const std::uint64_t most = std::max(shares, shares == 1 ? ring : 2 * ring);
        EXPECT_LE(of(c).use().ring, 4 * most) << shares;
        EXPECT_GE(of(c).use().ring, 4 * most / 2) << shares;
        of(c).drain(false);
        EXPECT_EQ(of(c).use().ring, 0u);
    }
    validate(c);
}

TEST_F(ClassHeapTest, AnEmptyBagServesAnyClass) {
    const ClassId small = class_of(32), other = class_of(512);
    const auto all = take_many(small, shape_of(small).objects);
    const BagIndex bag = node.big.region().bag_of(all[0]);
    of(small).put_into_bags(list_of(all));
    EXPECT_EQ(node.big.region().class_at(bag), no_class);
    EXPECT_EQ(node.big.use().small_bags, 0u);
    const Supply s = take(other, 1);
    EXPECT_EQ(node.big.region().bag_of(s.fresh), bag);
    EXPECT_EQ(node.big.region().class_at(bag), other);
}

TEST_F(ClassHeapTest, OneObjectHoldsItsBag) {
    const ClassId c = class_of(256);
    auto all = take_many(c, shape_of(c).objects);
    void* const kept = all[17];
    all.erase(all.begin() + 17);
    of(c).put_into_bags(list_of(all));
    validate(c);
    EXPECT_EQ(of(c).use().taken, 1u);
    EXPECT_EQ(of(c).use().bags, 1u);
    of(c).put_into_bags(list_of({kept}));
    expect_nothing_held(c);
}

// The bag being carved stays while it is short; drain() gives it back, but not while others use
// the class.
TEST_F(ClassHeapTest, DrainLetsGoOfTheCarvedBagWhenTheClassIsIdle) {
    const ClassId c = class_of(128);
    of(c).put_into_bags(list_of(take_many(c, 3)));
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
    EXPECT_EQ(first_keep, shape.batch) << "dense bags: keep a whole segment";
    EXPECT_LT(keep, shape.batch / 4);
    EXPECT_GE(keep, 1u);
    validate(c);
    put(c, list_of(all));
    const ClassUse use = of(c).use();
    EXPECT_EQ(use.taken, use.ring);
    EXPECT_LE(use.bags, 3u);
    expect_nothing_held(c);
}

// What one thread frees is no hole beside what another keeps: not when the lists come back through
// the ring, nor through the bags.
TEST_F(ClassHeapTest, SharesDoNotMixInABag) {
    const ClassId c = class_of(1024);
    const ClassShape& shape = shape_of(c);
    std::vector<void*> held[3];
    std::mt19937 random(5);
    for (int i = 0; i < 3000; ++i) {
        const unsigned k = random() % 3;
        if (held[k].size() < 8u * shape.objects) {
            for (void* p : objects(c, take(c, 8, k))) held[k].push_back(p);
            continue;
        }
        std::shuffle(held[k].begin(), held[k].end(), random);
        const std::vector<void*> some(held[k].end() - 8, held[k].end());
        held[k].resize(held[k].size() - 8);
        put(c, list_of(some));
    }
    std::set<std::uint32_t> bags[3];
    for (unsigned k = 0; k < 3; ++k)
        for (const void* p : held[k]) bags[k].insert(bag_of(p).value);
    for (unsigned k = 0; k < 3; ++k)
        for (const std::uint32_t b : bags[k])
            for (unsigned other = 0; other < k; ++other) EXPECT_EQ(bags[other].count(b), 0u) << k << ' ' << other;
    validate(c);
    for (const auto& some : held) of(c).put_into_bags(list_of(some));
    expect_nothing_held(c);
}

// A consumer's frees serve the producer, whose bags they came from.
TEST_F(ClassHeapTest, AListGoesHomeToItsShare) {
    const ClassId c = class_of(64);
    const auto produced = take_many(c, 20, 1);
    put(c, list_of(produced));
    EXPECT_NE(take(c, 1, 2).fresh, nullptr) << "not another's list";
    EXPECT_EQ(objects(c, take(c, 1, 1)), produced);
}

// Generations of threads, each of which leaves a list: the next takes it, and more do not pile up.
TEST_F(ClassHeapTest, OfThreadsThatEndOneListOfAShareRests) {
    const ClassId c = class_of(64);
    std::vector<void*> all = take_many(c, 4 * 100), others = take_many(c, 100, 1);
    const auto leave = [&](std::vector<void*>& from) {
        of(c).put_last(list_of({from.end() - 20, from.end()}));
        from.resize(from.size() - 20);
    };
    leave(all);
    EXPECT_EQ(of(c).use().ring, 20u);
    leave(all);
    leave(all);
    EXPECT_EQ(of(c).use().ring, 20u);
    leave(others);
    EXPECT_EQ(of(c).use().ring, 40u);
    validate(c);
    EXPECT_EQ(take(c, 1).count, 20u);
    leave(all);
    EXPECT_EQ(of(c).use().ring, 40u);
    EXPECT_EQ(of(c).use().taken, 500u - 2 * 20);  // with programs and in the ring
}

TEST_F(ClassHeapTest, AShareWithMuchFreeServesTheOthers) {
    const ClassId c = class_of(1024);
    const unsigned in_bag = shape_of(c).objects;
    auto mine = take_many(c, 16 * in_bag, 1);
    const std::uint64_t bags = of(c).use().bags;
    // Of each bag one object stays.
    std::vector<void*> freed;
    std::set<std::uint32_t> seen;
    for (void* p : mine)
        if (!seen.insert(bag_of(p).value).second) freed.push_back(p);
    of(c).put_into_bags(list_of(freed));
    const auto others = take_many(c, 10 * in_bag, 2);
    EXPECT_EQ(of(c).use().bags, bags);
    for (void* p : others) EXPECT_EQ(seen.count(bag_of(p).value), 1u);
    validate(c);
    // Dense again, it gives no more.
    const auto rest = take_many(c, 4 * in_bag, 1);
    EXPECT_EQ(seen.count(bag_of(take(c, 1, 3).fresh).value), 0u);
    (void)rest;
}

TEST_F(ClassHeapTest, AFullNodeGivesWhatItsOtherSharesHave) {
    const ClassId c = class_of(1024), other = class_of(2048);
    const auto from_ring = take_many(c, 5, 1);
    put(c, list_of(from_ring));
    ASSERT_NE(take(other, 1, 1).fresh, nullptr);
    while (node.take(1) != BigHeap::none) {}
    EXPECT_EQ(objects(c, take(c, 1, 2)), from_ring);
    EXPECT_NE(take(c, 1, 3).fresh, nullptr) << "the bag that share 1 was carving";
    EXPECT_NE(take(other, 1, 4).fresh, nullptr);
    validate(c);
}

TEST_F(ClassHeapTest, AFullNodeGivesNothing) {
    const std::uint64_t room = node.room();
    ASSERT_NE(node.take(static_cast<std::uint32_t>(room)), BigHeap::none);
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
        const Region& region = node.big.region();
        EXPECT_EQ(ClassHeap::why_invalid(region, c, p), nullptr);
        EXPECT_STREQ(ClassHeap::why_invalid(region, c, p + 16), "points inside an object, not at its start");
        EXPECT_STREQ(ClassHeap::why_invalid(region, c, p + size - 1), "points inside an object, not at its start");
        if (shape_of(c).objects > 1) {
            EXPECT_STREQ(ClassHeap::why_invalid(region, c, p + size), "was never allocated");
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
        const auto one_missing = [](std::vector<void*>& v) { std::rotate(v.begin() + long(v.size() / 2), v.begin() + long(v.size() / 2) + 1, v.end()); };
        const auto put_and_take = [&](auto&& arrange) {
            std::vector<void*> list = all;
            arrange(list);
            // All but one of each bag, so that the bags stay and can be looked into.
            std::vector<void*> kept;
            std::set<Bytes> seen;
            std::erase_if(list, [&](void* o) {
                const bool keep = seen.insert(node.big.region().head_of(bag_of(o)).value).second;
                if (keep) kept.push_back(o);
                return keep;
            });
            of(c).put_into_bags(list_of(list));
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
        of(c).put_into_bags(list_of(all));
        expect_nothing_held(c);
    }
}

// Threads of all shares at once, whose lists have objects of each other's bags, bags that move from share to
// share, and somebody who drains.
TEST_F(ClassHeapTest, SharesAreSortedIntoByManyThreads) {
    constexpr unsigned threads = 6;
    const ClassId c = class_of(1024);
    for (unsigned s = 0; s < threads; ++s) take_many(c, 1, s);
    const std::uint64_t kept = of(c).use().taken;
    std::mutex lock;
    std::vector<void*> exchanged;
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<void*> mine;
            for (int i = 0; i < 2000; ++i) {
                if (mine.size() < 100 + 900 * (random() % 2)) {
                    for (void* p : objects(c, of(c).take(8, t))) {
                        std::memset(p, int(t + 1), 1024);
                        mine.push_back(p);
                    }
                }
                {
                    std::lock_guard guard(lock);
                    exchanged.insert(exchanged.end(), mine.begin(), mine.begin() + long(mine.size() / 4));
                    mine.erase(mine.begin(), mine.begin() + long(mine.size() / 4));
                    std::shuffle(exchanged.begin(), exchanged.end(), random);
                    const std::size_t some = std::min<std::size_t>(exchanged.size(), random() % 64);
                    mine.insert(mine.end(), exchanged.end() - long(some), exchanged.end());
                    exchanged.resize(exchanged.size() - some);
                }
                const std::size_t some = std::min<std::size_t>(mine.size(), 1 + random() % 64);
                const std::vector<void*> gone(mine.end() - long(some), mine.end());
                mine.resize(mine.size() - some);
                if (gone.empty()) continue;
                if (i % 3 == 0) of(c).put_into_bags(list_of(gone));
                else if (i % 3 == 1) of(c).put_last(list_of(gone));
                else of(c).put(list_of(gone));
                if (i % 64 == 0) of(c).drain(i % 128 == 0);
            }
            std::lock_guard guard(lock);
            exchanged.insert(exchanged.end(), mine.begin(), mine.end());
        });
    for (std::thread& thread : running) thread.join();
    validate(c);
    EXPECT_EQ(of(c).use().taken, kept + exchanged.size() + of(c).use().ring);
    std::sort(exchanged.begin(), exchanged.end());
    EXPECT_EQ(std::unique(exchanged.begin(), exchanged.end()), exchanged.end());
    of(c).put_into_bags(list_of(exchanged));
    of(c).drain(false);
    EXPECT_EQ(of(c).use().taken, kept);
}

using ClassHeapDeathTest = ClassHeapTest;

// The object that was freed last lies in the middle of a row, or the row is longer than what is out.
TEST_F(ClassHeapDeathTest, ASecondFreeInARowIsSeen) {
    const ClassId c = class_of(64);
    std::vector<void*> all = take_many(c, 100);
    std::sort(all.begin(), all.end());
    const auto put_row = [&](long from, long to, bool up) {
        std::vector<void*> row(all.begin() + from, all.begin() + to);
        if (!up) std::reverse(row.begin(), row.end());
        of(c).put_into_bags(list_of(row));
    };
    of(c).put_into_bags(list_of({all[20], all[90], all[50]}));
    of(c).put_into_bags(list_of({all[51]}));
    for (const bool up : {true, false}) {
        EXPECT_DEATH(put_row(45, 60, up), "was freed twice");
        EXPECT_DEATH((put_row(52, 90, up), put_row(0, 20, up), put_row(21, 49, up), put_row(91, 99, up), put_row(52, 56, up)), "was freed twice");
    }
}

TEST_F(ClassHeapTest, RandomListsOfManyClasses) {
    std::mt19937 random(9);
    const ClassId classes[] = {class_of(16), class_of(80), class_of(1024), class_of(9000), class_of(40'000), class_of(500'000)};
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
            const SubList list = list_of(some);
            if (random() % 4 == 0) of(c).put_into_bags(list);
            else put(c, list);
        }
        if (random() % 1000 == 0) of(c).drain(random() % 2 == 0);
        const ClassUse use = of(c).use();
        ASSERT_EQ(use.taken, held[k].size() + use.ring);
        if (i % 500 == 0) validate(c);
    }
    for (unsigned k = 0; k < 6; ++k) {
        std::set<void*> distinct(held[k].begin(), held[k].end());
        ASSERT_EQ(distinct.size(), held[k].size());
        of(classes[k]).put_into_bags(list_of(held[k]));
        of(classes[k]).drain(false);
        validate(classes[k]);
    }
    EXPECT_EQ(node.big.use().small_bags, 0u);
}

}  // namespace
}  // namespace numalloc
