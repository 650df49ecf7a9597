// Pages of bags in use on which every object is free: they return to the system, and their objects are away until a
// refill.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/space/mark.h"
#include "support/made_up_class_heap.h"

namespace numalloc {
namespace {

constexpr Bytes page = 4 * KiB;
constexpr Bytes sizes[] = {16, 64, 80, 1008, 4096, 5120, 20480, 40 * KiB, 100 * KiB};

class FreePagesTest : public testing::ClassHeapFixture {
protected:
    // A second after the last call.
    Bytes return_free_pages(ClassId c) { return of(c).return_free_pages(now_ += 1000); }
    // Pages of these bags that no object in use has a byte of.
    std::set<Address> free_pages(ClassId c, const std::vector<void*>& all, const std::vector<void*>& kept) {
        std::set<Address> pages;
        for (void* o : all) {
            const Address start = address_of(node.pages.region().address(head_of(o)));
            for (Address p = start; p < start + shape_of(c).bags * bag_bytes; p += page) pages.insert(p);
        }
        for (void* o : kept) {
            const Address start = address_of(o);
            for (Address p = start / page * page; p < start + shape_of(c).size; p += page) pages.erase(p);
        }
        return pages;
    }
    BagIndex head_of(const void* o) { return node.pages.region().head_of(bag_of(o)); }

private:
    std::uint32_t now_ = 0;
};

TEST_F(FreePagesTest, JustThePagesGoThatNothingIsInUseOn) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        const std::size_t every = std::max<std::size_t>(2, shape_of(c).objects / 3);
        auto all = take_bags(c, 5);
        const auto kept = free_all_but(c, all, every);
        const std::set<Address> pages = free_pages(c, all, kept);
        const std::uint64_t bags = of(c).use().bags;
        const Bytes returned_before = node.pages.use().returned_bytes;
        EXPECT_EQ(return_free_pages(c), pages.size() * page) << size;
        EXPECT_EQ(node.pages.use().returned_bytes - returned_before, pages.size() * page) << size;
        for (const Address p : pages) {
            const char* const bytes = reinterpret_cast<const char*>(p);
            ASSERT_EQ(std::count(bytes, bytes + page, 0), long(page)) << size;
        }
        for (void* o : kept) {
            const char* const bytes = static_cast<const char*>(o);
            ASSERT_EQ(std::count(bytes, bytes + shape_of(c).size, 0x5a), long(shape_of(c).size)) << size;
        }
        validate(c);
        EXPECT_EQ(of(c).use().taken, kept.size());
        EXPECT_EQ(return_free_pages(c), 0u) << "of what nobody has used since, " << size;

        // Refills get each of them once, and no new bag.
        auto again = take_many(c, all.size() - kept.size());
        EXPECT_EQ(of(c).use().bags, bags) << size;
        fill(again, shape_of(c).size);
        again.insert(again.end(), kept.begin(), kept.end());
        std::sort(again.begin(), again.end());
        EXPECT_EQ(again, all) << size;
        of(c).give_to_bags(list_of(all));
        expect_nothing_held(c);
    }
}

TEST_F(FreePagesTest, ABagThatLeavesLosesItsMarksAndTouchesNothingThatIsAway) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        if (shape_of(c).objects < 2) continue;
        auto all = take_bags(c, 1);
        for (void* o : all) make_freed(static_cast<Object*>(o), shape_of(c).size);
        const std::vector<void*> kept = {all.back()};
        of(c).give_to_bags(list_of({all.begin(), all.end() - 1}));
        EXPECT_GT(return_free_pages(c), 0u) << size;
        // The pages that nothing in use is on.
        const auto protect = [pages = free_pages(c, all, kept)](int how) {
            for (const Address p : pages) ASSERT_EQ(mprotect(reinterpret_cast<void*>(p), page, how), 0);
        };
        protect(PROT_NONE);
        of(c).give_to_bags(list_of(kept));
        protect(PROT_READ | PROT_WRITE);
        expect_nothing_held(c);
        for (void* o : all) ASSERT_FALSE(was_freed(static_cast<Object*>(o))) << size;
    }
}

TEST_F(FreePagesTest, ABagIsGivenWhenItsLastObjectThatIsHereIsFreed) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        if (shape_of(c).objects < 2) continue;
        const auto all = take_bags(c, 2);
        const auto kept = free_all_but(c, all, shape_of(c).objects);
        EXPECT_GT(return_free_pages(c), 0u);
        ASSERT_EQ(kept.size(), 2u);
        of(c).give_to_bags(list_of({kept[0]}));
        EXPECT_EQ(of(c).use().bags, 1u) << size;
        of(c).give_to_bags(list_of({kept[1]}));
        expect_nothing_held(c);
    }
}

// Objects of the bag being carved that were never handed out stay, and read as zero.
TEST_F(FreePagesTest, TheRestOfACarvedBagStays) {
    const ClassId c = class_of(64);
    auto all = take_many(c, 200);
    ASSERT_EQ(all.size(), 200u);
    fill(all, 64);
    const auto kept = free_all_but(c, all, all.size());
    EXPECT_EQ(return_free_pages(c), 2 * page) << "of the first three and a bit the first has the one in use";
    const auto again = take_many(c, 199);
    EXPECT_EQ(of(c).use().bags, 1u);
    const Supply next = take(c, 1);
    EXPECT_EQ(next.fresh, static_cast<char*>(all[0]) + Bytes{200} * 64);
    EXPECT_TRUE(next.zeroed);
}

// A refill gets no more objects than it wants. The other objects of the page are free in the bag.
TEST_F(FreePagesTest, ARefillGetsWhatItWants) {
    const ClassId c = class_of(16);
    const auto all = take_bags(c, 1);
    const auto kept = free_all_but(c, all, all.size());
    EXPECT_EQ(return_free_pages(c), 7 * page);
    auto here = take_many(c, 255);  // beside the one in use
    const Supply back = take(c, 10);
    EXPECT_EQ(back.count, 10u);
    EXPECT_FALSE(back.zeroed);
    EXPECT_EQ(of(c).use().taken, 1u + 255 + 10);
    validate(c);
    EXPECT_EQ(take(c, 246).count, 246u) << "those that were taken back with them";
    EXPECT_EQ(of(c).use().bags, 1u);
}

TEST_F(FreePagesTest, SoonAfterALookOnlyMuchIsWorthAnother) {
    const ClassId c = class_of(64);
    const auto all = take_bags(c, 8);
    const auto kept = free_all_but(c, all, shape_of(c).objects);
    const auto take_and_free = [&](std::size_t objects) {
        const auto taken = take_many(c, objects);
        fill(taken, 64);
        of(c).give_to_bags(list_of(taken));
    };
    constexpr std::uint32_t later = policy::trim::look_again_after;
    EXPECT_EQ(of(c).return_free_pages(1000), 7 * 8 * page);
    take_and_free(63 * 8 + 64);  // those that stayed, and one page
    EXPECT_EQ(of(c).return_free_pages(1000 + later - 1), 0u);
    EXPECT_EQ(of(c).return_free_pages(1000 + later), page);
    take_and_free(all.size() - kept.size());
    EXPECT_EQ(of(c).return_free_pages(1001 + later), 7 * 8 * page);
    // An eighth of the objects is freed that were in use at the last look.
    auto more = take_many(c, all.size() - kept.size());
    EXPECT_EQ(of(c).return_free_pages(2000), 0u);
    more.insert(more.end(), kept.begin(), kept.end());
    std::sort(more.begin(), more.end());
    ASSERT_EQ(more, all);
    const std::vector<void*> eighth(all.begin(), all.begin() + long(shape_of(c).objects) - 1);
    of(c).give_to_bags(list_of(eighth));
    EXPECT_EQ(of(c).return_free_pages(2001), 0u) << "one less than an eighth";
    of(c).give_to_bags(list_of({all[shape_of(c).objects]}));
    EXPECT_GT(of(c).return_free_pages(2002), 0u);
    validate(c);
    std::vector<void*> rest(all.begin() + long(shape_of(c).objects) + 1, all.end());
    rest.push_back(all[shape_of(c).objects - 1]);
    of(c).give_to_bags(list_of(rest));
    expect_nothing_held(c);
}

// Even bags have free objects that are away only, odd ones free objects beside one in use on each page.
TEST_F(FreePagesTest, RefillsTakeObjectsOnPagesThatAreThereFirst) {
    const ClassId c = class_of(2048, 2048);  // two objects a page
    const std::size_t in_bag = shape_of(c).objects;
    const auto all = take_bags(c, 21);
    std::vector<void*> go, stay;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i / in_bag % 2 == 0 && i % in_bag >= 2) go.push_back(all[i]);
        if (i / in_bag % 2 == 1 && i % 2 == 0) stay.push_back(all[i]);
    }
    std::vector<void*> both = go;
    both.insert(both.end(), stay.begin(), stay.end());
    std::sort(both.begin(), both.end());
    of(c).give_to_bags(list_of(both));
    EXPECT_EQ(return_free_pages(c), 77 * page);
    auto again = take_many(c, stay.size());
    std::sort(again.begin(), again.end());
    EXPECT_EQ(again, stay);
    EXPECT_EQ(take(c, 14).count, 14u) << "as many in a row as are wanted";
    EXPECT_EQ(take_many(c, go.size() - 14).size(), go.size() - 14);
    EXPECT_EQ(of(c).use().bags, 21u);
    validate(c);
    of(c).give_to_bags(list_of(all));
    expect_nothing_held(c);
}

TEST_F(FreePagesTest, AnotherShardMayTakeTheBag) {
    const ClassId c = class_of(1024);
    const auto all = take_bags(c, 40, 1);
    std::vector<void*> kept = free_all_but(c, all, shape_of(c).objects);
    EXPECT_GT(return_free_pages(c), 0u);
    const std::uint64_t bags = of(c).use().bags;
    const auto taken = take_many(c, all.size() / 2, 2);
    EXPECT_EQ(of(c).use().taken, taken.size() + kept.size());
    EXPECT_LE(of(c).use().bags, bags + 1);
    validate(c);
    kept.insert(kept.end(), taken.begin(), taken.end());
    EXPECT_EQ(std::set<void*>(kept.begin(), kept.end()).size(), kept.size());
    of(c).give_to_bags(list_of(kept));
    expect_nothing_held(c);
}

TEST_F(FreePagesTest, WhatTheKernelRefusesStaysInTheBag) {
    const ClassId c = class_of(256);
    const auto all = take_bags(c, 3);
    ASSERT_EQ(syscall(SYS_mlock, all[0], 3 * bag_bytes), 0);
    const auto kept = free_all_but(c, all, shape_of(c).objects);
    EXPECT_EQ(return_free_pages(c), 0u);
    validate(c);
    EXPECT_EQ(syscall(SYS_munlock, all[0], 3 * bag_bytes), 0);
    EXPECT_EQ(return_free_pages(c), 3 * 7 * page) << "unlocked, and nobody has used it since";
    auto again = take_many(c, all.size() - kept.size());
    EXPECT_EQ(of(c).use().bags, 3u);
    again.insert(again.end(), kept.begin(), kept.end());
    of(c).give_to_bags(list_of(again));
    expect_nothing_held(c);
}

// The calls are direct: ThreadSanitizer makes mlock() do nothing.
// The pages before a locked one may be gone although the system refuses them all.
TEST_F(FreePagesTest, FreeObjectsAreWholeWhereOnePageIsLocked) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        if (shape_of(c).objects < 4) continue;
        const auto all = take_bags(c, 2);
        char* const locked = static_cast<char*>(node.pages.region().address(bag_of(all[0]))) + 5 * page;
        ASSERT_EQ(syscall(SYS_mlock, locked, page), 0);
        for (void* o : all) make_freed(static_cast<Object*>(o), shape_of(c).size);
        const auto kept = free_all_but(c, all, shape_of(c).objects);
        return_free_pages(c);
        validate(c);
        std::vector<void*> again = take_many(c, all.size() - kept.size());
        for (void* o : again) {
            EXPECT_TRUE(was_freed(static_cast<Object*>(o)) || address_of(o) >= address_of(all[0]) + bag_bytes) << size;
        }
        ASSERT_EQ(syscall(SYS_munlock, locked, page), 0);
        again.insert(again.end(), kept.begin(), kept.end());
        of(c).give_to_bags(list_of(again));
        expect_nothing_held(c);
    }
}

// Objects that stay in the list although pages of theirs went are used again. Where every second object is in use, no
// object of some classes is ever away.
TEST_F(FreePagesTest, AsMuchGoesEachTime) {
    for (const Bytes size : {80, 1008, 5120, 9000, 18400, 20480, 40'960}) {
        const ClassId c = class_of(size);
        for (const std::size_t every : {std::size_t{2}, std::max<std::size_t>(3, shape_of(c).objects / 2)}) {
            const auto all = take_bags(c, 6);
            const auto kept = free_all_but(c, all, every);
            for (int round = 0; round < 3; ++round) {
                return_free_pages(c);
                for (const Address p : free_pages(c, all, kept)) {
                    const char* const bytes = reinterpret_cast<const char*>(p);
                    ASSERT_EQ(std::count(bytes, bytes + page, 0), long(page)) << size << ", round " << round;
                }
                const auto again = take_many(c, all.size() - kept.size());
                fill(again, shape_of(c).size);
                of(c).give_to_bags(list_of(again));
            }
            of(c).give_to_bags(list_of(kept));
            expect_nothing_held(c);
        }
    }
}

// The end of an object in use lies where others are away.
TEST_F(FreePagesTest, APageThatIsUsedAgainByAnObjectThatBeginsBeforeItGoesAgain) {
    const ClassId c = class_of(5120);
    auto all = take_bags(c, 8);
    // Two objects with one whole page, on which the second one begins.
    std::size_t i = 1;
    const auto fits = [&] {
        const Address whole = align_up(address_of(all[i]), page);
        return head_of(all[i - 1]) == head_of(all[i + 2]) && whole + page == address_of(all[i + 2]) / page * page &&
               whole <= address_of(all[i + 1]);
    };
    while (i + 3 < all.size() && !fits()) ++i;
    ASSERT_TRUE(fits());
    void* const first = all[i];
    of(c).give_to_bags(list_of({first, all[i + 1]}));
    EXPECT_EQ(return_free_pages(c), page) << "has the end of the one and the beginning of the other";
    const std::vector<void*> again = objects(c, take(c, 1));
    ASSERT_EQ(again, std::vector{first});
    fill(again, 5120);
    of(c).give_to_bags(list_of(again));
    return_free_pages(c);
    EXPECT_EQ(static_cast<const char*>(first)[5119], 0);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    of(c).give_to_bags(list_of(all));
    expect_nothing_held(c);
}

using FreePagesDeathTest = FreePagesTest;

TEST_F(FreePagesDeathTest, ASecondFreeOfAnObjectAwayIsSeen) {
    const ClassId c = class_of(64);
    const auto all = take_bags(c, 1);
    const std::vector<void*> kept{all[0], all[1]};  // on one page: to free one object more does not empty the bag
    of(c).give_to_bags(list_of({all.begin() + 2, all.end()}));
    const Region& region = node.pages.region();
    EXPECT_EQ(ClassHeap::why_invalid(region, bag_of(all[300]), c, all[300]), nullptr);
    EXPECT_GT(return_free_pages(c), 0u);
    EXPECT_STREQ(ClassHeap::why_invalid(region, bag_of(all[300]), c, all[300]), "was freed already");
    EXPECT_EQ(ClassHeap::why_invalid(region, bag_of(kept[0]), c, kept[0]), nullptr);
    EXPECT_DEATH(of(c).give_to_bags(list_of({all[300]})), "was freed twice");
}

// Threads free objects of the bag that is looked at: they may see the objects that are there before it and the count
// after it. Debug builds find that at once, others hardly ever.
TEST_F(FreePagesTest, ObjectsAreFreedIntoABagWhilePagesGo) {
    const ClassId c = class_of(64);
    const auto all = take_bags(c, 2);
    const auto kept = free_all_but(c, all, shape_of(c).objects / 4);
    std::atomic<bool> over{false};
    std::vector<std::thread> running;
    for (unsigned t = 0; t < 2; ++t)
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 2000; ++i) of(c).give_to_bags(list_of(objects(c, of(c).take(1 + random() % 100, 0))));
        });
    std::thread returning([&] {
        while (!over) return_free_pages(c);
    });
    for (std::thread& thread : running) thread.join();
    over = true;
    returning.join();
    validate(c);
    of(c).give_to_bags(list_of(kept));
    return_free_pages(c);
    expect_nothing_held(c);
}

// While an object is in use, its first and last word name it and its thread.
TEST_F(FreePagesTest, ManyThreadsAndPagesThatGoMeanwhile) {
    constexpr unsigned threads = 3;
    constexpr int rounds = 1500;
    constexpr unsigned kinds = 4;
    const ClassId classes[kinds] = {class_of(64), class_of(1008), class_of(9000), class_of(40'000)};
    std::atomic<unsigned> at_work{threads};
    for (unsigned t = 0; t < threads; ++t) take(classes[0], 1, t);  // opens the shards, one thread at a time
    std::vector<std::thread> workers;
    std::vector<std::vector<void*>> left(threads * kinds);
    for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < rounds; ++i) {
                const unsigned k = random() % kinds;
                const ClassId c = classes[k];
                std::vector<void*>& held = left[t * kinds + k];
                const auto last_word = [&](void* o) {
                    return static_cast<std::uint64_t*>(o) + shape_of(c).size / 8 - 1;
                };
                if (random() % 2 == 0) {
                    for (void* o : objects(c, of(c).take(1 + random() % (shape_of(c).batch == 1 ? 8 : 64), t))) {
                        held.push_back(o);
                        *static_cast<std::uint64_t*>(o) = *last_word(o) = address_of(o) + t;
                    }
                    continue;
                }
                std::shuffle(held.begin(), held.end(), random);
                const std::size_t n = held.size() * (random() % 10) / 10;
                for (std::size_t j = 0; j < n; ++j)
                    for (const std::uint64_t* w : {static_cast<std::uint64_t*>(held[j]), last_word(held[j])})
                        ASSERT_EQ(*w, address_of(held[j]) + t);
                const std::vector<void*> some(held.begin(), held.begin() + long(n));
                held.erase(held.begin(), held.begin() + long(n));
                if (some.empty()) continue;
                if (random() % 2 == 0) of(c).give_to_bags(list_of(some));
                else of(c).put(list_of(some));
            }
            at_work.fetch_sub(1);
        });
    }
    Bytes went = 0;
    std::atomic<std::uint32_t> clock{0};
    const auto return_idle_pages = [&] {
        IdlePart part;
        of(classes[3]).return_idle_pages(clock.fetch_add(100), 1, part);
    };
    std::thread idling([&] {
        while (at_work.load() > 0) return_idle_pages();
    });
    while (at_work.load() > 0) {
        for (const ClassId c : classes) went += return_free_pages(c);
        return_idle_pages();
    }
    idling.join();
    for (std::thread& w : workers) w.join();
    for (const ClassId c : classes) went += return_free_pages(c);  // if this thread has had no turn
    for (unsigned k = 0; k < kinds; ++k) {
        validate(classes[k]);
        for (unsigned t = 0; t < threads; ++t) of(classes[k]).give_to_bags(list_of(left[t * kinds + k]));
    }
    for (const ClassId c : classes) of(c).drain(false);
    EXPECT_EQ(of(classes[0]).use().taken, threads) << "those that opened the shards";
    for (unsigned k = 1; k < kinds; ++k) EXPECT_EQ(of(classes[k]).use().bags, 0u);
    EXPECT_GT(went, 0u);
}

}  // namespace
}  // namespace numalloc
