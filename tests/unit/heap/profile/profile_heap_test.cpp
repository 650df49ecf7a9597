// A heap whose profile is on: what it estimates is what was done, whatever the order of calls and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "heap/profile/recorded.h"
#include "heap/program_heaps/bound_heap.h"
#include "os/seeds.h"
#include "support/made_up_heap.h"

// The linker's name for os::layout_seed(): which objects are recorded is the same in each run.
extern "C" std::uint64_t __wrap__ZN8numalloc2os11layout_seedENS0_7SeedForE(numalloc::os::SeedFor) { return 1; }

namespace numalloc {
namespace {

using namespace numalloc::testing;

constexpr Bytes period = 16 * KiB;

class ProfileHeap : public ::testing::Test {
protected:
    void SetUp() override {
        start_heap(2);
        if (!profile::on()) {
            ASSERT_TRUE(profile::start(period));
        }
    }

    struct Seen {
        double allocated = 0, in_use = 0, freed_remotely = 0;
    };
    // So far, of all stacks.
    static Seen seen() {
        profile::Table<profile::SiteUse> sites;
        EXPECT_TRUE(profile::recorded->store.sum_up(sites, [](const profile::Block&) -> profile::OsNode { return 0; }));
        Seen s;
        sites.for_each([&](const profile::SiteUse& use) {
            s.allocated += use.allocated.objects;
            s.in_use += use.in_use.objects;
        });
        sites.release();
        return s;
    }

    // What `work` adds; it allocates `objects` of the class in all and leaves `left`.
    static void expect_seen(ClassId c, double objects, double left, const std::function<void()>& work) {
        const Seen before = seen();
        run_on(0, work);
        const Seen after = seen();
        const double p = profile::Sampling{period}.chance(shape_of(c).size);
        const auto bounds = [&](double n) { return 5 * std::sqrt(n * (1 - p)) / std::sqrt(p) + 1; };
        EXPECT_NEAR(after.allocated - before.allocated, objects, bounds(objects)) << shape_of(c).size;
        EXPECT_NEAR(after.in_use - before.in_use, left, bounds(left)) << shape_of(c).size;
        EXPECT_EQ(profile::recorded->store.lost(), 0u);
    }
};

// As many objects of each class as make some thousand records.
unsigned count_for(ClassId c) {
    return static_cast<unsigned>(
        max_of<Bytes>(400, 2000 * period / shape_of(c).size / (shape_of(c).size > 64 * KiB ? 50 : 1)));
}

const Bytes sizes[] = {16, 48, 200, 1024, 3000, 20000, 40000, 300000};

TEST_F(ProfileHeap, AllocatedAndFreedLater) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        const unsigned n = min_of(count_for(c), 200000u);
        expect_seen(c, n, 0, [=] {
            std::vector<void*> objects;
            for (unsigned i = 0; i < n; ++i) objects.push_back(allocate(c));
            for (void* p : objects) release(p);
        });
    }
}

TEST_F(ProfileHeap, AllocatedAndFreedInPairs) {
    for (const Bytes size : sizes) {
        const ClassId c = class_of(size);
        const unsigned n = count_for(c);
        expect_seen(c, n, 0, [=] {
            for (unsigned i = 0; i < n; ++i) release(allocate(c));
        });
    }
}

TEST_F(ProfileHeap, AtRandom) {
    for (const unsigned seed : {1u, 2u, 3u, 4u}) {
        for (const Bytes size : {Bytes{16}, Bytes{640}, Bytes{5000}, Bytes{40000}}) {
            const ClassId c = class_of(size);
            const unsigned n = min_of(count_for(c), 300000u);
            unsigned kept = 0;
            expect_seen(c, n, 0, [&, c, n] {
                std::mt19937 random(seed);
                std::vector<void*> objects;
                for (unsigned i = 0; i < n;) {
                    // In runs, up and down.
                    for (unsigned k = random() % 200; k > 0 && i < n; --k, ++i) objects.push_back(allocate(c));
                    for (unsigned k = random() % 200; k > 0 && !objects.empty(); --k) {
                        std::swap(objects.back(), objects[random() % objects.size()]);
                        release(objects.back());
                        objects.pop_back();
                    }
                    if (random() % 50 == 0) flush_thread();
                }
                for (void* p : objects) release(p);
                kept += static_cast<unsigned>(objects.size());
            });
        }
    }
    validate_heap();
}

TEST_F(ProfileHeap, FreedByAThreadOfAnotherNode) {
    const ClassId c = class_of(300);
    const unsigned n = 50000;
    expect_seen(c, n, 0, [=] {
        std::vector<void*> objects;
        for (unsigned i = 0; i < n; ++i) objects.push_back(allocate(c));
        run_on(1, [&] {
            for (void* p : objects) release(p);
        });
    });
}

TEST_F(ProfileHeap, ForAnotherNode) {
    const ClassId c = class_of(300);
    const unsigned n = 50000;
    expect_seen(c, n, 0, [=] {
        for (unsigned i = 0; i < n; ++i) release(allocate_on(this_thread_heap, NodeId{1}, c, 300).p);
    });
}

// About a fifth of these objects are recorded, and then come from another bag.
TEST_F(ProfileHeap, RecordedObjectsHaveTheAlignmentOfTheirClass) {
    const ClassId c = class_of(4096, 4096);
    std::vector<void*> objects;
    expect_seen(c, 1000, 0, [&] {
        for (unsigned i = 0; i < 1000; ++i) {
            objects.push_back(allocate(c));
            ASSERT_EQ(address_of(objects.back()) % 4096, 0u) << i;
        }
        for (void* p : objects) release(p);
    });
}

TEST_F(ProfileHeap, WhatLivesIsInUse) {
    const ClassId c = class_of(500);
    const unsigned n = 40000;
    std::vector<void*> objects;
    expect_seen(c, n, n / 2.0, [&] {
        for (unsigned i = 0; i < n; ++i) objects.push_back(allocate(c));
        for (unsigned i = 0; i < n; i += 2) release(objects[i]);
    });
    run_on(0, [&] {
        for (unsigned i = 1; i < n; i += 2) release(objects[i]);
    });
}

// A thread's lists are never longer than what may come before the next record.
TEST_F(ProfileHeap, CountsWhatComesIntoLists) {
    run_on(0, [] {
        std::mt19937 random(9);
        std::vector<std::pair<void*, ClassId>> objects;
        for (unsigned i = 0; i < 200000; ++i) {
            if (random() % 2 == 0 || objects.empty()) {
                const ClassId c = class_of(1 + random() % 2000);
                objects.emplace_back(allocate(c), c);
            } else {
                std::swap(objects.back(), objects[random() % objects.size()]);
                release(objects.back().first);
                objects.pop_back();
            }
            if (i % 100 != 0) continue;
            for (unsigned c = 1; c < class_count; ++c) ASSERT_GE(this_thread_heap->profile->left[c], 0) << c;
        }
        ASSERT_EQ(this_thread_heap->bound, 0u);
        for (auto& [p, c] : objects) release(p);
    });
}

TEST_F(ProfileHeap, SecondFreesOfRecordedObjectsAreSeen) {
    run_on(0, [] {
        const ClassId c = class_of(100);
        void* recorded = nullptr;
        for (unsigned i = 0; i < 100000 && recorded == nullptr; ++i) {
            void* const p = allocate(c);
            if (locate(p).found == Found::bound) recorded = p;
            else release(p);
        }
        ASSERT_NE(recorded, nullptr);
        release(recorded);
        EXPECT_DEATH(release(recorded), "freed already|not an allocated object");
    });
}

}  // namespace
}  // namespace numalloc
