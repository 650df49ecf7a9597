// Where thread heaps lie: slots of threads that have ended serve new ones, or go back.
#include <atomic>
#include <thread>
#include <vector>

#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;
using testing::run_on;

class SlotTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(8); }
    void TearDown() override { testing::validate_heap(); }
};

TEST_F(SlotTest, SlotsAreReused) {
    run_on(2, [] {});
    const std::uint32_t made = process_heap.node(NodeId{2})->slots.made();
    for (int i = 0; i < 200; ++i) run_on(2, [] { release(allocate(Bytes{32})); });
    EXPECT_EQ(process_heap.node(NodeId{2})->slots.made(), made);
}

// Threads of node 2 that are there at the same time and then end. Until they have returned their heaps the caller calls
// `meanwhile` again and again.
template <class Call>
void crowd(unsigned threads, Call meanwhile) {
    const SlotPool& slots = process_heap.node(NodeId{2})->slots;
    std::atomic<unsigned> there{0};
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i)
        all.push_back(testing::thread_on(2, [&] {
            for (Bytes size = 16; size < 3000; size += 100) {
                void* const p = allocate(size);
                EXPECT_NE(p, nullptr);
                if (p != nullptr) release(p);
            }
            for (++there; there < threads;) std::this_thread::yield();
        }));
    while (there < threads || slots.taken() > 0) meanwhile();
    for (std::thread& t : all) t.join();
}

TEST_F(SlotTest, HeapsOfEndedThreadsGoBack) {
    constexpr unsigned threads = 300;
    SlotPool& slots = process_heap.node(NodeId{2})->slots;
    crowd(threads, [] {});
    ASSERT_GE(slots.made(), threads);
    {
        const SlotPool::Walk walk(slots);
        process_heap.give_back_thread_heaps();
        EXPECT_GE(walk.made(), threads);
    }
    process_heap.give_back_thread_heaps();
    const std::uint32_t left = slots.made();
    EXPECT_LE(left, 32u);
    // As new ones.
    const Region& region = process_heap.node(NodeId{2})->pages.region();
    const auto* const end = static_cast<const char*>(slots.at(region, threads));
    for (const auto* byte = static_cast<const char*>(slots.at(region, left)); byte != end; ++byte) ASSERT_EQ(*byte, 0);
    crowd(threads, [] {});
    EXPECT_GE(slots.made(), threads);
}

TEST_F(SlotTest, HeapsGoBackWhileOtherThreadsEnd) {
    for (int round = 0; round < 20; ++round) crowd(150, [] { process_heap.give_back_thread_heaps(); });
}

}  // namespace
}  // namespace numalloc
