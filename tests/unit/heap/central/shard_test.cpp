// The shards of a class's bags: who takes from which, whose rings hold what, and many threads at once.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "support/made_up_class_heap.h"

namespace numalloc {
namespace {

using ShardTest = testing::ClassHeapFixture;

// What one thread frees is no hole beside what another keeps: not when the lists come back through
// the ring, nor through the bags.
TEST_F(ShardTest, ShardsDoNotMixInABag) {
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
    for (const auto& some : held) of(c).give_to_bags(list_of(some));
    expect_nothing_held(c);
}

// A consumer's frees serve the producer, whose bags they came from.
TEST_F(ShardTest, AListGoesHomeToItsShard) {
    const ClassId c = class_of(64);
    const auto produced = take_many(c, 20, 1);
    put(c, list_of(produced));
    EXPECT_NE(take(c, 1, 2).fresh, nullptr) << "not another's list";
    EXPECT_EQ(objects(c, take(c, 1, 1)), produced);
}

// Generations of threads, each of which leaves a list: the next takes it, and more do not pile up.
TEST_F(ShardTest, OfThreadsThatEndOneListOfAShareRests) {
    const ClassId c = class_of(64);
    std::vector<void*> all = take_many(c, 4 * 100), others = take_many(c, 100, 1);
    const auto leave = [&](std::vector<void*>& from) {
        of(c).give_last(list_of({from.end() - 20, from.end()}));
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

TEST_F(ShardTest, AShareWithMuchFreeServesTheOthers) {
    const ClassId c = class_of(1024);
    const unsigned in_bag = shape_of(c).objects;
    auto mine = take_many(c, 16 * in_bag, 1);
    const std::uint64_t bags = of(c).use().bags;
    // Of each bag one object stays.
    std::vector<void*> freed;
    std::set<std::uint32_t> seen;
    for (void* p : mine)
        if (!seen.insert(bag_of(p).value).second) freed.push_back(p);
    of(c).give_to_bags(list_of(freed));
    const auto others = take_many(c, 10 * in_bag, 2);
    EXPECT_EQ(of(c).use().bags, bags);
    for (void* p : others) EXPECT_EQ(seen.count(bag_of(p).value), 1u);
    validate(c);
    // Dense again, it gives no more.
    const auto rest = take_many(c, 4 * in_bag, 1);
    EXPECT_EQ(seen.count(bag_of(take(c, 1, 3).fresh).value), 0u);
    (void)rest;
}

TEST_F(ShardTest, AFullNodeGivesWhatItsOtherSharesHave) {
    const ClassId c = class_of(1024), other = class_of(2048);
    const auto from_ring = take_many(c, 5, 1);
    put(c, list_of(from_ring));
    ASSERT_NE(take(other, 1, 1).fresh, nullptr);
    while (node.take(1) != PageHeap::none) {}
    EXPECT_EQ(objects(c, take(c, 1, 2)), from_ring);
    EXPECT_NE(take(c, 1, 3).fresh, nullptr) << "the bag that shard 1 was carving";
    EXPECT_NE(take(other, 1, 4).fresh, nullptr);
    validate(c);
}

// More shards have no more in their rings together than twice what one has, but for a list each.
TEST_F(ShardTest, TheRingsOfManySharesAreShorter) {
    const ClassId c = class_of(1024);
    const unsigned ring = shape_of(c).ring;
    const unsigned length = shape_of(c).batch;
    const auto rest = take_many(c, 3000);
    for (const unsigned shards : {1u, 2u, 4u, 8u, 16u}) {
        std::vector<std::vector<void*>> lists;
        for (unsigned s = 0; s < shards; ++s)
            for (unsigned i = 0; i < ring + 2; ++i) lists.push_back(take_many(c, length, s));
        for (const auto& list : lists) put(c, list_of(list));
        const std::uint64_t most = std::max(shards, shards == 1 ? ring : 2 * ring);
        EXPECT_LE(of(c).use().ring, length * most) << shards;
        EXPECT_GE(of(c).use().ring, length * most / 2) << shards;
        of(c).drain(false);
        EXPECT_EQ(of(c).use().ring, 0u);
    }
    validate(c);
}

// Of short lists, as threads have them that are many, there may be as many more.
TEST_F(ShardTest, ARingHasRoomForMoreShortLists) {
    const ClassId c = class_of(1024);
    const unsigned length = shape_of(c).batch / 4;
    auto all = take_many(c, 3000);
    for (unsigned s = 1; s < 16; ++s) take_many(c, 1, s);
    for (unsigned i = 0; i < 6; ++i, all.resize(all.size() - length)) put(c, list_of({all.end() - length, all.end()}));
    EXPECT_EQ(of(c).use().ring, 4 * length);
    validate(c);
}

// Threads that have a few large objects each share bags.
TEST_F(ShardTest, LargeObjectsLieInTheFirstShards) {
    const ClassId c = class_of(64 * KiB);
    std::vector<void*> all;
    for (unsigned s = 0; s < 16; ++s) all.push_back(take_many(c, 1, s).front());
    EXPECT_LE(of(c).use().bags, 4u);
    validate(c);
    of(c).give_to_bags(list_of(all));
    expect_nothing_held(c);
}

// A large object that rests serves a smaller request; of a list only one, for a thread's list is of its own class. What
// is flushed where few are in use is of the class alone.
TEST_F(ShardTest, ALargeObjectServesTheClassBelow) {
    const ClassId c = class_of(64 * KiB), below = class_of(52 * KiB), far_below = class_of(40 * KiB);
    ASSERT_LE(2 * size_of_class(c.value), 3 * size_of_class(below.value));
    ASSERT_GT(2 * size_of_class(c.value), 3 * size_of_class(far_below.value));
    std::vector<void*> all = take_many(c, 32), smaller = take_many(below, 64);
    const auto next = [&] {
        void* const p = all.back();
        all.pop_back();
        return p;
    };
    void* const p = next();
    put(c, list_of({p}));
    EXPECT_EQ(of(c).use().ring, 1u);
    EXPECT_NE(take(far_below, 1).list, p) << "it is more than 1.5 times as long";
    EXPECT_EQ(objects(below, take(below, 1)), std::vector<void*>{p});
    EXPECT_EQ(of(c).use().ring, 0u);
    put(c, list_of({p, next()}));
    EXPECT_EQ(objects(below, take(below, 1)), std::vector<void*>{p});
    validate(c);
    put(c, list_of({p}));
    // One of every second bag stays.
    const unsigned in_two_bags = 2 * shape_of(below).objects;
    for (std::size_t i = 0; i < smaller.size(); ++i)
        if (i % in_two_bags != 0) put(below, list_of({smaller[i]}));
    EXPECT_EQ(of(below).use().ring, 0u) << "few are in use";
    EXPECT_EQ(of(c).use().ring, 1u);
    of(c).give_to_bags(list_of(all));
    validate(c);
    validate(below);
}

// Refills of one shard while others give back into the very bags that are cut, and nobody drops an object.
TEST_F(ShardTest, BagsAreCutWhileOthersGiveBack) {
    constexpr unsigned threads = 4;
    const ClassId c = class_of(64);
    auto kept = take_many(c, 4);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<void*> mine;
            for (int i = 0; i < 4000; ++i) {
                if (mine.size() < 600) {
                    for (void* p : objects(c, of(c).take(1 + random() % 200, 0))) {
                        *static_cast<unsigned*>(p) = t;
                        mine.push_back(p);
                    }
                }
                for (void* p : mine) ASSERT_EQ(*static_cast<unsigned*>(p), t);
                std::shuffle(mine.begin(), mine.end(), random);
                const std::size_t some = 1 + random() % mine.size();
                of(c).give_to_bags(list_of({mine.end() - long(some), mine.end()}));
                mine.resize(mine.size() - some);
            }
            if (!mine.empty()) of(c).give_to_bags(list_of(mine));
        });
    for (std::thread& thread : running) thread.join();
    validate(c);
    EXPECT_EQ(of(c).use().taken, kept.size());
    of(c).give_to_bags(list_of(kept));
    expect_nothing_held(c);
}

// Into a shard that was drained, and that nothing was taken from since.
TEST_F(ShardTest, TheListOfAnEndedThreadIsDrained) {
    const ClassId c = class_of(1024);
    const std::vector<void*> all = take_many(c, 8);
    of(c).drain(false);
    of(c).give_last(list_of(all));
    EXPECT_EQ(of(c).use().ring, all.size());
    expect_nothing_held(c);
}

// Of a shard that was drained before the one bag that is left is emptied by a list of another's ring.
TEST_F(ShardTest, DrainingOneShareEmptiesTheBagsOfAnother) {
    const ClassId c = class_of(1024);
    std::vector<void*> list = take_many(c, 5, 3), of_other = take_many(c, 3, 1);
    of(c).drain(false);
    list.insert(list.end(), of_other.begin(), of_other.end());
    put(c, list_of(list));
    EXPECT_EQ(of(c).use().ring, list.size());
    expect_nothing_held(c);
}

// Threads of all shards at once, whose lists have objects of each other's bags, bags that move from shard to
// shard, and somebody who drains.
TEST_F(ShardTest, SharesAreSortedIntoByManyThreads) {
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
                if (i % 3 == 0) of(c).give_to_bags(list_of(gone));
                else if (i % 3 == 1) of(c).give_last(list_of(gone));
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
    of(c).give_to_bags(list_of(exchanged));
    of(c).drain(false);
    EXPECT_EQ(of(c).use().taken, kept);
}

// A bag all of whose objects are free, while a thread cuts some of them off: it is not given back under it. Debug
// builds find that at once, others hardly ever.
TEST_F(ShardTest, ABagThatIsBeingCutStays) {
    const ClassId c = class_of(1024);
    std::atomic<bool> over{false};
    std::vector<std::thread> running;
    for (unsigned t = 0; t < 2; ++t)
        running.emplace_back([&, t] {
            for (int i = 0; i < 20000; ++i) {
                const std::vector<void*> mine = objects(c, take(c, 1 + i % 3));
                for (void* p : mine) std::memset(static_cast<char*>(p) + sizeof(Object), static_cast<int>(t + 1), 64);
                for (void* p : mine) ASSERT_EQ(static_cast<char*>(p)[sizeof(Object) + 63], static_cast<char>(t + 1));
                of(c).give_to_bags(list_of(mine));
            }
        });
    std::thread giver([&] {
        while (!over) of(c).give_carved(0);
    });
    for (std::thread& thread : running) thread.join();
    over = true;
    giver.join();
    validate(c);
}

}  // namespace
}  // namespace numalloc
