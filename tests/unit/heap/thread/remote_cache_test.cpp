// A thread's remote cache, on a made-up machine of eight nodes: what it keeps, when it sends, and
// that it gives everything back.
#include <atomic>
#include <vector>

#include "heap/program_heaps/any_object.h"
#include "heap/thread/lists.h"
#include "support/made_up_clock.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;
using testing::run_on;

class RemoteCacheTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(8); }
    // What an earlier test left in rings and bags is no part of this one: memory begins as the system gives it.
    void SetUp() override { process_heap.purge_all(); }
    void TearDown() override { testing::validate_heap(); }

    static ClassUse use(unsigned node, ClassId c) { return process_heap.node(NodeId{node})->of(c).use(); }
};

TEST_F(RemoteCacheTest, IsBoundedAndSendsBatches) {
    const ClassId c = class_of(64);
    const ClassShape& shape = shape_of(c);
    std::vector<void*> all;
    run_on(0, [&] {
        for (unsigned i = 0; i < 3u * shape.batch; ++i) all.push_back(allocate(c));
    });
    process_heap.purge_all();
    const std::uint64_t before = use(0, c).taken;
    run_on(7, [&] {
        for (unsigned i = 0; i < all.size(); ++i) {
            EXPECT_EQ(use(0, c).ring, Bytes{i} / shape.batch * shape.batch) << "whole batches only";
            release(all[i]);
            EXPECT_LE((i + 1 - use(0, c).ring) * shape.size, policy::remote::budget);
        }
        EXPECT_TRUE(this_thread_heap->remote_cache.empty());
    });
    EXPECT_EQ(use(0, c).taken, before) << "in the ring";
    process_heap.purge_all();
    EXPECT_EQ(use(0, c).taken, before - all.size());
}

// Many classes and nodes at once: the sum is what is bounded.
TEST_F(RemoteCacheTest, TheBudgetCoversAllLists) {
    std::vector<void*> all;
    process_heap.purge_all();
    Bytes of_others = 0;
    const auto held = [&] {
        Bytes sum = 0;
        for (unsigned n = 0; n < 4; ++n)
            for (unsigned c = 1; c < class_count; ++c)
                sum += (use(n, ClassId{c}).taken - use(n, ClassId{c}).ring) * size_of_class(c);
        return sum - of_others;
    };
    of_others = held();
    for (unsigned n = 0; n < 4; ++n)
        run_on(n, [&] {
            for (int round = 0; round < 4; ++round)
                for (unsigned c = 1; c < class_count; ++c) all.push_back(allocate(ClassId{c}));
        });
    Bytes with_program = held();
    run_on(7, [&] {
        for (void* p : all) {
            with_program -= usable_size(p, "test");
            release(p);
            ASSERT_LE(held() - with_program, policy::remote::budget);
        }
    });
    EXPECT_EQ(held(), 0u) << "the thread's end sends the rest";
}

// Of each of 32 classes of seven nodes one object, which fit the budget, and the same once more, which do not.
TEST_F(RemoteCacheTest, ListsDoNotCollideAndAreSentInTurn) {
    constexpr unsigned classes = 32;
    std::vector<void*> all;
    process_heap.purge_all();
    for (int round = 0; round < 2; ++round)
        for (unsigned n = 0; n < 7; ++n)
            run_on(n, [&] {
                for (unsigned c = 1; c <= classes; ++c) all.push_back(allocate(ClassId{c}));
            });
    const auto in_rings = [&] {
        Bytes sum = 0;
        for (unsigned n = 0; n < 7; ++n)
            for (unsigned c = 1; c <= classes; ++c) sum += use(n, ClassId{c}).ring * size_of_class(c);
        return sum;
    };
    const auto sent = [&, before = in_rings()] { return in_rings() - before; };
    Bytes freed = 0;
    run_on(7, [&] {
        // The clock stands: no housekeeping is due after this.
        put_off_housekeeping();
        for (std::size_t i = 0; i < all.size(); ++i) {
            freed += usable_size(all[i], "test");
            release(all[i]);
            if (i + 1 == all.size() / 2) {
                ASSERT_LT(freed, policy::remote::budget);
                ASSERT_EQ(sent(), 0u) << "each list has a place";
            }
            if (freed > policy::remote::budget) {
                ASSERT_GT(freed - sent(), policy::remote::budget - 2 * classes * granule) << "one list at a time";
            }
        }
    });
    EXPECT_EQ(sent(), freed) << "the thread's end sends the rest";
}

TEST_F(RemoteCacheTest, TheTableGoesBackWithWhatRestsThere) {
    void* p = nullptr;
    run_on(0, [&] { p = allocate(class_of(64)); });
    run_on(3, [&] {
        const auto tables = [] {
            std::uint64_t sum = 0;
            for (unsigned c = class_of(1025).value; c < class_count; ++c)
                sum += use(3, ClassId{c}).taken - use(3, ClassId{c}).ring;
            return sum;
        };
        const std::uint64_t before = tables();
        release(p);
        EXPECT_EQ(tables(), before + 1);
        send_quiet_remote_caches(0);
        EXPECT_EQ(tables(), before);
    });
}

TEST_F(RemoteCacheTest, OfAQuietThreadIsEmptiedByOthers) {
    const ClassId c = class_of(300);
    for (const std::uint32_t clock : {testing::clock_start, testing::before_wrap(20)}) {
        testing::set_clock(clock);
        void* p = nullptr;
        run_on(1, [&] { p = allocate(c); });
        ASSERT_EQ(use(1, c).taken - use(1, c).ring, 1u);
        std::atomic<int> stage{0};
        std::thread quiet = testing::thread_on(2, [&] {
            release(p);
            stage = 1;
            while (stage != 2) std::this_thread::yield();
        });
        while (stage != 1) std::this_thread::yield();
        testing::advance_clock(29);
        send_quiet_remote_caches(30);
        EXPECT_EQ(use(1, c).taken - use(1, c).ring, 1u) << "young: left alone";
        testing::advance_clock(1);
        send_quiet_remote_caches(30);
        EXPECT_EQ(use(1, c).taken - use(1, c).ring, 0u);
        stage = 2;
        quiet.join();
        process_heap.purge_all();
    }
}

}  // namespace
}  // namespace numalloc
