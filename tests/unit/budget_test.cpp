// What threads may hold together: budgets that grow with work, are shared and come back.
#include <atomic>
#include <chrono>
#include <vector>

#include "heap/thread/lists.h"
#include "made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;
using testing::run_on;

class BudgetTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(8); }
    void TearDown() override { testing::validate_heap(); }

    static ClassUse use(unsigned node, ClassId c) { return process_heap.node(NodeId{node})->of(c).use(); }
    // The equation of budget.h.
    static void check_claim(const ThreadHeap* h) {
        std::uint64_t claim = 0;
        for (unsigned c = 1; c < class_count; ++c) {
            const ThreadHeap::Lists& s = h->lists[c];
            claim += Bytes{s.limit + std::uint32_t{s.sealed_count}} * size_of_class(c) + (s.limit != 0 ? claim_of_class(c) : 0);
        }
        EXPECT_EQ(h->claim, claim);
    }
};

TEST(BudgetPool, LendsWhatItHasAndTellsWhoHasMore) {
    BudgetPool pool;
    pool.start(4);
    constexpr std::uint32_t all = BudgetPool::fewest_cpus * BudgetPool::of_cpu;
    EXPECT_EQ(pool.take(all - 1), all - 1);
    EXPECT_EQ(pool.take(100), 1u);
    EXPECT_EQ(pool.take(100), 0u);
    pool.ask(1000);
    EXPECT_FALSE(pool.asked_by_less_than(1000));
    EXPECT_TRUE(pool.asked_by_less_than(1001));
    EXPECT_FALSE(pool.asked_by_less_than(1001)) << "one for each that asks";
    // With more threads it is smaller than what is lent: nothing until enough came back.
    pool.set_threads(2 * BudgetPool::fewest_cpus);
    pool.give(all / 4);
    EXPECT_EQ(pool.take(100), 0u);
    pool.give(all / 2);
    EXPECT_EQ(pool.take(all), all / 4);
    pool.set_threads(1'000'000);
    pool.give(all / 2);
    EXPECT_EQ(pool.take(all), all / BudgetPool::smallest_part);
    pool.restart(all / 2);
    EXPECT_EQ(pool.take(all), all / 2);
    // More CPUs, more that run.
    pool.restart(0);
    pool.see_cpu(31);
    pool.set_threads(32);
    EXPECT_EQ(pool.take(4 * all), 2 * all);
}

// A thread uses every class, then waits until `go`.
void use_all_and_wait(std::atomic<unsigned>& there, const std::atomic<bool>& go) {
    for (int round = 0; round < 3; ++round)
        for (unsigned c = 1; c <= class_of(medium_limit).value; ++c) {
            std::vector<void*> all;
            for (unsigned i = 0; i < 4u * shape_of(ClassId{c}).batch; ++i) all.push_back(allocate(ClassId{c}));
            for (void* p : all) release(p);
        }
    ++there;
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Nobody can take from threads that wait what they hold: together it is bounded.
TEST_F(BudgetTest, WaitingThreadsHoldLittleTogether) {
    constexpr unsigned count = 100;
    std::atomic<unsigned> there{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) threads.push_back(testing::thread_on(7, [&] { use_all_and_wait(there, go); }));
    while (there < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process_heap.scavenge(true);
    Bytes held = 0;
    for (unsigned c = 1; c < class_count; ++c) held += use(7, ClassId{c}).taken * size_of_class(c);
    EXPECT_LE(held, 20 * MiB);
    go = true;
    for (std::thread& thread : threads) thread.join();
}

// One that has work has its share of the pool however many others there are that never needed it.
TEST_F(BudgetTest, ThreadsThatSleepAreNoCrowd) {
    const ClassId c = class_of(Bytes{96});
    std::atomic<unsigned> there{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < 280; ++i)
        crowd.push_back(testing::thread_on(7, [&] {
            ++there;
            while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }));
    while (there < crowd.size()) std::this_thread::yield();
    run_on(7, [&] {
        std::vector<void*> all;
        for (unsigned i = 0; i < 40u * shape_of(c).batch; ++i) all.push_back(allocate(c));
        EXPECT_EQ(this_thread_heap->lists[c.value].capacity, shape_of(c).batch);
        for (void* p : all) release(p);
        check_claim(this_thread_heap);
    });
    go = true;
    for (std::thread& thread : crowd) thread.join();
}

// The thread that works gets what it needs, and what it had is there for others when it has ended.
TEST_F(BudgetTest, BudgetsGrowWithWorkAndComeBack) {
    BudgetPool& pool = process_heap.node(NodeId{5})->budgets;
    const auto left = [&] {
        const std::uint32_t all = pool.take(~0U);
        pool.give(all);
        return all;
    };
    const std::uint32_t before = left();
    run_on(5, [&] {
        EXPECT_LE(this_thread_heap->budget, BudgetPool::least);
        std::atomic<unsigned> there{0};
        const std::atomic<bool> go{true};
        for (int i = 0; i < 4; ++i) use_all_and_wait(there, go);
        EXPECT_GE(this_thread_heap->budget, 8 * BudgetPool::least);
        EXPECT_EQ(left(), before - this_thread_heap->lent);
        check_claim(this_thread_heap);
        // One class alone needs less: a round of housekeeping over all classes for each half.
        for (int i = 0; i < 600'000 && this_thread_heap->budget > 4 * BudgetPool::least; ++i) {
            void* all[8];
            for (void*& p : all) p = allocate(class_of(medium_limit));
            for (void* p : all) release(p);
        }
        EXPECT_LE(this_thread_heap->budget, 4 * BudgetPool::least);
        check_claim(this_thread_heap);
    });
    EXPECT_EQ(left(), before);
}

}  // namespace
}  // namespace numalloc
