// Free objects above 32 KiB that no thread has needed for purge_delay: their pages return to the system, a part at a
// time.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/space/mark.h"
#include "support/made_up_class_heap.h"

namespace numalloc {
namespace {

constexpr std::uint32_t delay = 1000;
// Of its bags each has two objects, and nothing else.
constexpr Bytes size = 48 * KiB;
const ClassId c = class_of(size, 4 * KiB);

class IdlePagesTest : public testing::ClassHeapFixture {
protected:
    // The bytes of the class that go at that time: after the start, in milliseconds.
    Bytes bytes_at(ClassId of_class, std::uint32_t now, IdlePart part = {}) {
        const Bytes before = node.pages.use().returned_bytes;
        of(of_class).return_idle_pages(start + now, delay, part);
        validate(of_class);
        return node.pages.use().returned_bytes - before;
    }
    // The objects of class `c` that go.
    Bytes idle_at(std::uint32_t now, IdlePart part = {}) {
        const Bytes went = bytes_at(c, now, part);
        EXPECT_EQ(went % size, 0u);
        return went / size;
    }
    // One of two objects in each of `bags` bags stays in use. A period begins with the others listed.
    void begin(std::size_t bags) {
        ASSERT_EQ(shape_of(c).objects, 2u);
        ASSERT_EQ(Bytes{shape_of(c).bags} << bag_shift, 2 * size);
        all_ = take_bags(c, bags);
        kept_ = free_all_but(c, all_, 2);
        EXPECT_EQ(idle_at(0), 0u);
    }
    void take_and_free(std::size_t objects) {
        const auto taken = take_many(c, objects);
        fill(taken, size);
        of(c).give_to_bags(list_of(taken));
    }
    // All free objects are there once, in the same bags, and go with these.
    void expect_whole() {
        const std::uint64_t bags = of(c).use().bags;
        auto again = take_many(c, all_.size() - kept_.size());
        EXPECT_EQ(of(c).use().bags, bags);
        fill(again, size);
        again.insert(again.end(), kept_.begin(), kept_.end());
        std::sort(again.begin(), again.end());
        EXPECT_EQ(again, all_);
        for (void* o : kept_) {
            const char* const bytes = static_cast<const char*>(o);
            ASSERT_EQ(std::count(bytes, bytes + size, 0x5a), long(size));
        }
        of(c).give_to_bags(list_of(all_));
        expect_nothing_held(c);
    }

    const Region& region() const { return node.pages.region(); }

    // The times of a shard begin with zero, as the clock may: its first periods are over at once.
    static constexpr std::uint32_t start = 5000;
    std::vector<void*> all_, kept_;
};

TEST_F(IdlePagesTest, GoOnceThePeriodIsOver) {
    begin(20);
    EXPECT_EQ(idle_at(delay - 1), 0u);
    EXPECT_EQ(idle_at(delay), 20u);
    for (std::uint32_t later = delay + 1; later < 20 * delay; later += delay / 10) ASSERT_EQ(idle_at(later), 0u);
    expect_whole();
}

TEST_F(IdlePagesTest, GoInParts) {
    begin(500);
    constexpr std::size_t part = policy::idle::bytes_a_call / size + 1;
    EXPECT_EQ(idle_at(delay), part);
    EXPECT_EQ(idle_at(delay + 1), part);
    EXPECT_EQ(idle_at(delay + 2), 500 - 2 * part);
    EXPECT_EQ(idle_at(delay + 3), 0u);
    EXPECT_EQ(idle_at(3 * delay), 0u);
    expect_whole();
}

TEST_F(IdlePagesTest, APartLooksAtFewBags) {
    begin(50);
    for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(idle_at(delay + i, {.bags = 9}), 9u);
    EXPECT_EQ(idle_at(delay + 5, {.bags = 9}), 5u);
    EXPECT_EQ(idle_at(3 * delay), 0u);
    expect_whole();
}

TEST_F(IdlePagesTest, AsManyStayAsThreadsTook) {
    begin(20);
    take_and_free(7);
    EXPECT_EQ(idle_at(delay), 13u);
    take_and_free(7);
    EXPECT_EQ(idle_at(2 * delay), 0u) << "those that stayed were needed again";
    EXPECT_EQ(idle_at(3 * delay), 7u);
    expect_whole();
}

TEST_F(IdlePagesTest, WhatIsFreedLaterWaitsForThePeriodAfter) {
    begin(20);
    for (void* const taken : take_many(c, 3)) {
        fill({taken}, size);
        const auto at = std::find(all_.begin(), all_.end(), taken) - all_.begin();
        void* const beside = all_[static_cast<std::size_t>(at) ^ 1];
        std::replace(kept_.begin(), kept_.end(), beside, taken);
        of(c).give_to_bags(list_of({beside}));
    }
    EXPECT_EQ(idle_at(delay), 17u);
    EXPECT_EQ(idle_at(2 * delay), 3u);
    expect_whole();
}

TEST_F(IdlePagesTest, ALookEndsWhenThreadsNeedWhatIsLeft) {
    begin(500);
    const std::size_t part = idle_at(delay);
    take_and_free(500 - part);
    EXPECT_EQ(idle_at(delay + 1), 0u);
    EXPECT_EQ(idle_at(2 * delay), 0u) << "a period began then";
    EXPECT_GT(idle_at(2 * delay + 1), 0u);
    EXPECT_GT(part, 0u);
    EXPECT_GT(idle_at(2 * delay + 2), 0u);
    expect_whole();
}

TEST_F(IdlePagesTest, WhatComesBackStaysLonger) {
    const auto more = take_bags(c, 10);
    begin(20);
    EXPECT_EQ(idle_at(delay), 20u);
    take_and_free(20);
    EXPECT_EQ(idle_at(2 * delay), 0u) << "too early, it has turned out";
    EXPECT_EQ(idle_at(4 * delay - 1), 0u);
    EXPECT_EQ(idle_at(4 * delay), 20u) << "twice the delay later";
    // Nobody needs them from now on.
    EXPECT_EQ(idle_at(6 * delay), 0u);
    const std::vector<void*> some(more.begin(), more.begin() + 10), others(more.begin() + 10, more.end());
    const auto some_kept = free_all_but(c, some, 2);
    EXPECT_EQ(idle_at(8 * delay), 0u);
    EXPECT_EQ(idle_at(10 * delay), 5u);
    const auto others_kept = free_all_but(c, others, 2);
    EXPECT_EQ(idle_at(11 * delay), 0u);
    EXPECT_EQ(idle_at(12 * delay), 5u) << "periods are short again";
    for (const auto& kept : {some_kept, others_kept}) kept_.insert(kept_.end(), kept.begin(), kept.end());
    all_.insert(all_.end(), more.begin(), more.end());
    std::sort(all_.begin(), all_.end());
    expect_whole();
}

// Every third period a job needs all of them: once it has paid for new pages twice, they stay.
TEST_F(IdlePagesTest, AJobThatRunsNowAndThenKeepsItsPages) {
    begin(20);
    Bytes went = 0;
    for (std::uint32_t now = 100; now < 100 * delay; now += 100) {
        went += idle_at(now);
        if (now % (3 * delay) == 0) take_and_free(20);
    }
    EXPECT_EQ(went, 40u);
    EXPECT_EQ(idle_at(200 * delay) + idle_at(300 * delay), 20u) << "when it has ended";
    expect_whole();
}

TEST_F(IdlePagesTest, MallocTrimGoesOnWithALook) {
    begin(500);
    const std::size_t part = idle_at(delay);
    EXPECT_EQ(of(c).return_free_pages(start + delay + 1), (500 - part) * size);
    EXPECT_EQ(idle_at(delay + 2), 0u);
    EXPECT_EQ(idle_at(2 * delay + 2), 0u);
    EXPECT_EQ(idle_at(3 * delay + 2), 0u);
    expect_whole();
}

TEST_F(IdlePagesTest, WhatMallocTrimReturnedIsNotIdle) {
    begin(40);
    EXPECT_EQ(of(c).return_free_pages(start + 1), 40 * size);
    take_and_free(40);
    EXPECT_EQ(idle_at(delay), 0u);
    EXPECT_EQ(idle_at(3 * delay), 40u) << "they have come back once";
    expect_whole();
}

// Most objects of these classes begin on a page with the end of the one before.
TEST_F(IdlePagesTest, AnObjectWhoseFirstPageStaysGoes) {
    const ClassId coloured = class_of(100'000);
    const Bytes bag = Bytes{shape_of(coloured).bags} << bag_shift;
    ASSERT_EQ(shape_of(coloured).objects, 2u);
    const auto all = take_bags(coloured, 400);
    const auto kept = free_all_but(coloured, all, 2);
    // 100 are needed again and again.
    const auto take_and_free = [&] {
        const auto taken = take_many(coloured, 100);
        fill(taken, 100'000);
        of(coloured).give_to_bags(list_of(taken));
    };
    EXPECT_EQ(bytes_at(coloured, 0), 0u);
    for (std::uint32_t now = 100; now < delay; now += 100) {
        take_and_free();
        EXPECT_EQ(bytes_at(coloured, now), 0u);
    }
    Bytes went = 0;
    for (std::uint32_t now = delay; now < delay + 10; ++now) {
        const Bytes part = bytes_at(coloured, now);
        EXPECT_LE(part, policy::idle::bytes_a_call + bag);
        went += part;
    }
    EXPECT_GE(went, 300 * (100'000 - 2 * 4 * KiB));
    EXPECT_LE(went, 300 * (bag - 100'000));
    for (std::uint32_t now = delay + 100; now < 5 * delay; now += 100) {
        take_and_free();
        EXPECT_EQ(bytes_at(coloured, now), 0u) << "those that stayed suffice";
    }
    auto again = take_many(coloured, all.size() - kept.size());
    fill(again, 100'000);
    again.insert(again.end(), kept.begin(), kept.end());
    std::sort(again.begin(), again.end());
    EXPECT_EQ(again, all);
    of(coloured).give_to_bags(list_of(all));
    expect_nothing_held(coloured);
}

TEST_F(IdlePagesTest, WhatLeavesWithItsBagIsNotIdle) {
    const auto more = take_bags(c, 10);
    begin(40);
    of(c).give_to_bags(list_of({kept_.begin(), kept_.begin() + 10}));
    kept_.erase(kept_.begin(), kept_.begin() + 10);
    all_.erase(all_.begin(), all_.begin() + 20);
    const auto more_kept = free_all_but(c, more, 2);
    // Both objects of a bag that leaves count as listed.
    EXPECT_EQ(idle_at(delay), 20u);
    EXPECT_EQ(idle_at(2 * delay), 20u);
    all_.insert(all_.end(), more.begin(), more.end());
    std::sort(all_.begin(), all_.end());
    kept_.insert(kept_.end(), more_kept.begin(), more_kept.end());
    expect_whole();
}

// The call is direct: ThreadSanitizer makes mlock() do nothing.
TEST_F(IdlePagesTest, ARefusalEndsTheCall) {
    begin(3);
    for (const BagIndex locked : {bag_of(all_.front()), bag_of(all_.back())}) {
        ASSERT_EQ(syscall(SYS_mlock, node.at(region().head_of(locked)), 2 * size), 0);
    }
    Bytes went = 0;
    unsigned refused = 0;
    for (std::uint32_t period = 1; period <= 4; ++period) {
        const Bytes before = node.pages.use().returned_bytes;
        IdlePart part;
        of(c).return_idle_pages(start + period * delay, delay, part);
        if (part.bytes == 0) ++refused;
        went += node.pages.use().returned_bytes - before;
        EXPECT_EQ(idle_at((period + 1) * delay - 1), 0u) << "not before another period is over";
    }
    EXPECT_EQ(went, size) << "the others have their turn";
    EXPECT_GE(refused, 2u);
    EXPECT_EQ(syscall(SYS_munlock, node.at(region().head_of(bag_of(all_.front()))), 2 * size), 0);
    EXPECT_EQ(syscall(SYS_munlock, node.at(region().head_of(bag_of(all_.back()))), 2 * size), 0);
    EXPECT_EQ(idle_at(6 * delay), 2u);
    expect_whole();
}

// Its free objects begin on pages with objects in use.
TEST_F(IdlePagesTest, WhatTheKernelRefusesStaysListed) {
    const ClassId coloured = class_of(40'000);
    const auto all = take_bags(coloured, 1);
    const Bytes bytes = Bytes{shape_of(coloured).bags} << bag_shift;
    ASSERT_EQ(shape_of(coloured).objects, 3u);
    of(coloured).give_to_bags(list_of({all[1]}));
    EXPECT_EQ(bytes_at(coloured, 0), 0u);
    void* const bag = node.at(bag_of(all[0]));
    for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(syscall(SYS_mlock, bag, bytes), 0);
        if (round == 0) EXPECT_EQ(of(coloured).return_free_pages(start), 0u);
        else EXPECT_EQ(bytes_at(coloured, delay), 0u);
        EXPECT_TRUE(was_freed(static_cast<const Object*>(all[1])));
        ASSERT_EQ(syscall(SYS_munlock, bag, bytes), 0);
    }
    EXPECT_GE(bytes_at(coloured, 2 * delay), 32 * KiB);
    const Supply back = take(coloured, 1);
    EXPECT_EQ(back.fresh, all[1]);
    of(coloured).give_to_bags(list_of(all));
    expect_nothing_held(coloured);
}

// Though they lie in one bag.
TEST_F(IdlePagesTest, NoMoreGoThanWereIdle) {
    const ClassId several = class_of(36'000);
    const auto all = take_bags(several, 1);
    ASSERT_EQ(shape_of(several).objects, 4u);
    of(several).give_to_bags(list_of({all[1], all[3], all[2]}));
    EXPECT_EQ(bytes_at(several, 0), 0u);
    of(several).give_to_bags(list_of(take_many(several, 2)));  // the two freed last
    const Bytes went = bytes_at(several, delay);
    EXPECT_GE(went, 28 * KiB);
    EXPECT_LE(went, 64 * KiB) << "the tail of the bag counts";
    EXPECT_GE(bytes_at(several, 2 * delay), 2 * 28 * KiB) << "the others a period later";
    EXPECT_EQ(take_many(several, 3).size(), 3u);
    of(several).give_to_bags(list_of(all));
    expect_nothing_held(several);
}

TEST_F(IdlePagesTest, AThreadThatComesLateEndsNoPeriod) {
    begin(20);
    take_and_free(7);
    EXPECT_EQ(idle_at(delay), 13u);
    EXPECT_EQ(idle_at(delay - 1), 0u);
    EXPECT_EQ(idle_at(2 * delay), 7u);
    expect_whole();
}

TEST_F(IdlePagesTest, SmallerObjectsStay) {
    const ClassId small = class_of(24 * KiB, 4 * KiB);
    const auto all = take_bags(small, 20);
    const auto kept = free_all_but(small, all, 2);
    for (std::uint32_t now = 0; now < 5 * delay; now += delay) EXPECT_EQ(bytes_at(small, now), 0u);
    of(small).give_to_bags(list_of(kept));
    expect_nothing_held(small);
}

// A part of a huge page would cost its neighbours theirs.
TEST(IdlePages, StayOnHugePages) {
    testing::Node node{-1, 512 * MiB, 8192, true};
    const auto shards = std::make_unique<Shards>();
    ClassHeap heap{*shards, node.pages, c};
    std::vector<Object*> objects(800);
    for (Object*& o : objects) o = static_cast<Object*>(heap.take(1).fresh);
    const auto free_some = [&](bool huge) {
        for (std::size_t i = 0; i < objects.size(); i += 2) {
            if ((node.pages.region().bag_of(objects[i]) >= node.pages.region().huge_from()) != huge) continue;
            *objects[i] = {};
            heap.give_to_bags({objects[i], 1});
        }
    };
    const auto idle = [&](std::uint32_t start) {
        const Bytes before = node.pages.use().returned_bytes;
        for (std::uint32_t now = start; now < start + 5 * delay; now += 100) {
            IdlePart part;
            heap.return_idle_pages(now, delay, part);
        }
        return node.pages.use().returned_bytes - before;
    };
    free_some(true);
    EXPECT_EQ(idle(5000), 0u);
    free_some(false);
    EXPECT_GT(idle(10000), 0u) << "of the first 8 MiB";
    EXPECT_GT(heap.return_free_pages(20000), 0u) << "malloc_trim() breaks them";
}

}  // namespace
}  // namespace numalloc
