// A thread and its lists, on a made-up machine of eight nodes. This host has one node and refuses
// the bindings; where memory lies is told by its region.
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <set>
#include <vector>

#include "base/check.h"
#include "heap/program_heaps/any_object.h"
#include "heap/thread/attach.h"
#include "heap/thread/held.h"
#include "heap/thread/lists.h"
#include "support/made_up_heap.h"
#include "support/thread_lists.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::check_lists;
using testing::length;
using testing::release;
using testing::run_on;
using testing::validate_heap;

constexpr unsigned nodes = 8;

sigjmp_buf before_second_free;

class ThreadHeapTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(nodes); }
    // What an earlier test left in rings and bags is no part of this one: memory begins as the system gives it.
    void SetUp() override { process_heap.purge_all(); }
    void TearDown() override { validate_heap(); }

    static ClassUse use(unsigned node, ClassId c) { return process_heap.node(NodeId{node})->of(c).use(); }
    // Past the first frees, which are checked one by one: from here on they are fast.
    static void trust() {
        for (int i = 0; i < 2000; ++i) release(allocate(Bytes{16}));
        ASSERT_EQ(this_thread_heap->bound, this_thread_heap->fast_bound);
        ASSERT_NE(this_thread_heap->bound, 0u);
    }
    // Frees some objects of the class, so that its list has another head than before.
    static void use_list(ClassId c) {
        std::vector<void*> all;
        for (int i = 0; i < 24; ++i) all.push_back(allocate(c));
        for (void* p : all) release(p);
    }
    static Bytes held_of(const ThreadHeap* h, ClassId c) { return h->lists[c.value].held * size_of_class(c.value); }
};

TEST_F(ThreadHeapTest, MemoryAndMetadataLieOnTheThreadsNode) {
    for (unsigned n = 0; n < nodes; ++n)
        run_on(n, [n] {
            EXPECT_EQ(process_heap.space().region_of(this_thread_heap), n);
            EXPECT_EQ(process_heap.space().region_of(this_thread_heap->home), n);
            // First of all: afterwards it may have what the classes gave back.
            void* const big = process_heap.take_big(NodeId{n}, 3 * MiB + 1, 1);
            EXPECT_EQ(process_heap.space().region_of(big), n);
            EXPECT_TRUE(process_heap.owner(big)->pages.region().is_zero(big, 3 * MiB + 1));
            EXPECT_EQ(usable_size(big, "test"), 3 * MiB + max_of(bag_bytes, os::page_size()));
            release(big);
            EXPECT_EQ(process_heap.node(NodeId{n})->pages.use().big_objects, 0u);
            for (unsigned c = 1; c < class_count; ++c) {
                void* p = allocate(ClassId{c});
                ASSERT_NE(p, nullptr);
                EXPECT_EQ(process_heap.space().region_of(p), n);
                EXPECT_EQ(usable_size(p, "test"), size_of_class(c));
                release(p);
            }
        });
}

// Of the largest classes first, if they are as idle as others.
TEST_F(ThreadHeapTest, AThreadOverItsLimitFlushesIdleListsFirst) {
    run_on(1, [] {
        ThreadHeap* const h = this_thread_heap;
        const std::vector<ClassId> idle = {class_of(400), class_of(500), class_of(640)};
        const std::vector<ClassId> in_use = {class_of(1000), class_of(5000)};
        const auto look = [h](const std::vector<ClassId>& classes, bool used) {
            for (const ClassId c : classes) h->lists[c.value].seen = used ? nullptr : h->head[c.value];
        };
        const auto is_there = [h](const ClassId c) { return h->head[c.value] != &end_of_list; };
        for (const ClassId c : idle) use_list(c);
        for (const ClassId c : in_use) use_list(c);
        look(idle, false);
        look(in_use, true);
        ASSERT_TRUE(std::all_of(idle.begin(), idle.end(), is_there));
        h->slow_paths = 0;  // so that nothing is granted
        h->may_hold = (held_of(h, in_use[0]) + held_of(h, in_use[1])) * 5 / 4;
        hold_less(h, no_class);
        EXPECT_LE(h->held, h->may_hold);
        EXPECT_FALSE(is_there(idle.back()));
        EXPECT_TRUE(is_there(in_use[0]) && is_there(in_use[1]));
        check_lists(h);

        // Nothing is idle: one list is enough.
        for (const ClassId c : in_use) use_list(c);
        look(in_use, true);
        h->slow_paths = 0;
        h->may_hold = (length(h->head[in_use[0].value]) + length(h->lists[in_use[0].value].sealed)) *
                      shape_of(in_use[0]).size * 5 / 4;
        hold_less(h, no_class);
        EXPECT_TRUE(is_there(in_use[0]));
        EXPECT_FALSE(is_there(in_use[1]));
        check_lists(h);
    });
}

TEST_F(ThreadHeapTest, TheFastPathsBiasFindsTheMapsByte) {
    run_on(3, [] {
        trust();
        const Region& region = this_thread_heap->home->pages.region();
        for (unsigned c = 1; c < class_count; ++c) {
            void* p = allocate(ClassId{c});
            const std::uint64_t j = (address_of(p) + this_thread_heap->bias) >> bag_shift;
            ASSERT_LT(j, this_thread_heap->bound);
            EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(this_thread_heap) - class_reach + j,
                      region.class_map() + region.bag_of(p).value);
            release(p);
        }
        check_lists(this_thread_heap);
    });
}

TEST_F(ThreadHeapTest, ObjectsAreDistinctAndComeBackLastFirst) {
    run_on(1, [] {
        trust();
        std::set<Address> seen;
        std::vector<void*> all;
        for (int i = 0; i < 5000; ++i) all.push_back(allocate(Bytes{96}));
        for (void* p : all) EXPECT_TRUE(seen.insert(address_of(p)).second);
        for (auto i = seen.begin(); std::next(i) != seen.end(); ++i) EXPECT_GE(*std::next(i) - *i, 96u);
        release(all[10]);
        release(all[11]);
        EXPECT_EQ(allocate(Bytes{96}), all[11]);
        EXPECT_EQ(allocate(Bytes{96}), all[10]);
        for (void* p : all) release(p);
        check_lists(this_thread_heap);
    });
}

TEST_F(ThreadHeapTest, FreshObjectsSayThatTheyAreZero) {
    run_on(2, [] {
        const Allocation fresh = testing::allocate_object(class_of(200'000));
        EXPECT_TRUE(fresh.zeroed);
        auto* p = static_cast<unsigned char*>(fresh.p);
        for (Bytes i = sizeof(Object); i < 200'000; ++i) ASSERT_EQ(p[i], 0);
        std::memset(p, 1, 200'000);
        release(p);
        const Allocation again = testing::allocate_object(class_of(200'000));
        EXPECT_EQ(again.p, p);
        EXPECT_FALSE(again.zeroed);
        release(p);
    });
}

// Every class, freed in a row: what one thread keeps to itself is bounded, the rest is the node's.
TEST_F(ThreadHeapTest, AThreadKeepsAtMostAFewSegments) {
    run_on(4, [] {
        trust();
        for (unsigned c = 1; c < class_count; ++c) {
            const ClassId id{c};
            const ClassShape& shape = shape_of(id);
            std::vector<void*> all;
            for (unsigned i = 0; i < 8u * shape.batch + 8; ++i) all.push_back(allocate(id));
            for (void* p : all) release(p);
            const ThreadHeap::Lists& s = this_thread_heap->lists[c];
            const std::uint32_t current =
                this_thread_heap->head[c] == &end_of_list ? 0 : length(this_thread_heap->head[c]);
            EXPECT_LE(current + (s.sealed != nullptr ? s.sealed_count : 0u), 4u * shape.batch) << "class " << c;
        }
        check_lists(this_thread_heap);
    });
}

TEST_F(ThreadHeapTest, AThreadKeepsLargeObjectsOfFewClasses) {
    run_on(4, [] {
        for (unsigned round = 0; round < 2; ++round)
            for (unsigned c = class_of(table_limit).value + 1; c < first_aligned; ++c) {
                void* p = allocate(ClassId{c});
                release(p);
                // The one freed last is the next.
                ASSERT_EQ(allocate(ClassId{c}), p);
                release(p);
                unsigned kept = 0;
                for (unsigned i = class_of(table_limit).value + 1; i < first_aligned; ++i)
                    kept += this_thread_heap->head[i] != &end_of_list;
                EXPECT_LE(kept, 2u) << "class " << c;
            }
        check_lists(this_thread_heap);
    });
}

// Passive false sharing: two threads that free neighbours must not get them back, one each. In a fresh
// heap and in one that a thread before had.
TEST_F(ThreadHeapTest, AThreadsFirstFreesOfWhatOthersAllocatedDoNotComeBackToIt) {
    const ClassId c = class_of(Bytes{8});
    run_on(3, [c] {
        for (int round = 0; round < 2; ++round) {
            void* const given = allocate(c);
            const unsigned shard = this_thread_heap->shard;
            run_on(3, [=] {
                if (this_thread_heap->shard == shard)
                    this_thread_heap->shard = static_cast<std::uint8_t>((shard + 1) % policy::shards::most);
                if (round > 0) {
                    ASSERT_LT(this_thread_heap->checked_frees, 1000u) << "a heap that was used before";
                }
                release(given);
                for (int i = 0; i < 1000; ++i) {
                    void* const own = allocate(c);
                    ASSERT_NE(address_of(own) / 64, address_of(given) / 64);
                    release(own);
                }
                trust();
            });
        }
    });
}

TEST_F(ThreadHeapTest, SegmentsGrowInAThreadThatOnlyFrees) {
    // A consumer: else each few of its frees would take the slow way.
    const ClassId c = class_of(Bytes{96});
    std::vector<void*> all;
    run_on(0, [&] {
        for (unsigned i = 0; i < 40u * shape_of(c).batch; ++i) all.push_back(allocate(c));
    });
    run_on(0, [&] {
        this_thread_heap->lists[c.value].capacity = 0;  // whatever the slot's last thread learned
        for (unsigned i = 0; i < 12u * shape_of(c).batch; ++i) release(all[i]);
        EXPECT_EQ(this_thread_heap->lists[c.value].capacity, shape_of(c).batch);
        for (unsigned i = 12u * shape_of(c).batch; i < all.size(); ++i) release(all[i]);
    });
}

// Thousands of threads may be alive, of which few run: what they hold together is bounded.
TEST_F(ThreadHeapTest, SegmentsAreSmallInACrowd) {
    const ClassId c = class_of(Bytes{96});
    const auto capacity = [c] {
        std::vector<void*> all;
        for (unsigned i = 0; i < 20u * shape_of(c).batch; ++i) all.push_back(allocate(c));
        const std::uint32_t grown = this_thread_heap->lists[c.value].capacity;
        for (void* p : all) release(p);
        check_lists(this_thread_heap);
        return grown;
    };
    std::atomic<unsigned> there{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> crowd;
    run_on(7, [&] {
        EXPECT_EQ(capacity(), shape_of(c).batch);
        for (unsigned i = 0; i < 279; ++i)
            crowd.push_back(testing::thread_on(7, [&] {
                ++there;
                go.wait(false);
            }));
        while (there < crowd.size()) std::this_thread::yield();
        EXPECT_EQ(capacity(), shape_of(c).batch / 4u);
        EXPECT_EQ(process_heap.node(NodeId{6})->slots.crowding(), 0u);
        go = true;
        go.notify_all();
        for (std::thread& thread : crowd) thread.join();
        EXPECT_EQ(capacity(), shape_of(c).batch);
    });
}

TEST_F(ThreadHeapTest, AnEndedThreadLeavesNothingBehind) {
    run_on(5, [] {
        std::vector<void*> all;
        for (unsigned c = 1; c < class_count; ++c)
            for (int i = 0; i < 100; ++i) all.push_back(allocate(ClassId{c}));
        for (void* p : all) release(p);
    });
    process_heap.purge_all();
    for (unsigned c = 1; c < class_count; ++c) {
        EXPECT_EQ(use(5, ClassId{c}).taken, 0u) << "class " << c;
        EXPECT_EQ(use(5, ClassId{c}).bags, 0u) << "class " << c;
    }
    EXPECT_EQ(process_heap.node(NodeId{5})->pages.use().small_bags, 0u);
    EXPECT_EQ(process_heap.node(NodeId{5})->pages.use().dirty_bags, 0u);
}

// Threads that free more than they allocate, one after the other: each takes over the list that
// the one before has left in the ring and makes it longer. It must not grow without end (its
// counts have 16 bits).
TEST_F(ThreadHeapTest, ListsStayBoundedOverGenerations) {
    const ClassId c = class_of(16);
    std::vector<void*> all;
    run_on(6, [&] {
        for (int i = 0; i < 300'000; ++i) all.push_back(allocate(c));
    });
    std::uint32_t longest = 0;
    while (all.size() > 1000)
        run_on(6, [&] {
            all.push_back(allocate(c));
            for (int i = 0; i < 250; ++i) {
                release(all.back());
                all.pop_back();
            }
            longest = std::max(longest, length(this_thread_heap->head[c.value]));
        });
    EXPECT_LE(longest, 4u * shape_of(c).batch);
    run_on(6, [&] {
        for (void* p : all) release(p);
    });
}

TEST_F(ThreadHeapTest, RemoteFreesGoHomeFromNodesBelowAndAbove) {
    const ClassId c = class_of(160);
    std::vector<void*> of_node[nodes];
    for (unsigned n = 0; n < nodes; ++n)
        run_on(n, [&, n] {
            for (int i = 0; i < 500; ++i) of_node[n].push_back(allocate(c));
        });
    for (unsigned n = 0; n < nodes; ++n) ASSERT_GE(use(n, c).taken, 500u);
    run_on(3, [&] {
        trust();
        for (int i = 0; i < 500; ++i)
            for (unsigned n = 0; n < nodes; ++n) release(of_node[n][std::size_t(i)]);
        // Nothing of another node may enter its own lists.
        std::vector<void*> own;
        for (int i = 0; i < 1000; ++i) own.push_back(allocate(c));
        for (void* p : own) {
            ASSERT_EQ(process_heap.space().region_of(p), 3u);
            release(p);
        }
    });
    process_heap.purge_all();
    for (unsigned n = 0; n < nodes; ++n) EXPECT_EQ(use(n, c).taken, 0u) << "node " << n;
}

TEST_F(ThreadHeapTest, AThreadThatMovesAllocatesOnItsNewNode) {
    std::vector<void*> old;
    run_on(0, [&] {
        trust();
        for (int i = 0; i < 300; ++i) old.push_back(allocate(Bytes{64}));
        rehome_current_thread(NodeId{0});
        EXPECT_EQ(this_thread_heap->home->node, NodeId{0});
        rehome_current_thread(NodeId{6});
        EXPECT_EQ(this_thread_heap->home->node, NodeId{6});
        for (int i = 0; i < 300; ++i) ASSERT_EQ(process_heap.space().region_of(allocate(Bytes{64})), 6u);
        for (void* p : old) release(p);
        check_lists(this_thread_heap);
    });
}

TEST_F(ThreadHeapTest, ThreadsWithoutAHeapAreServed) {
    ASSERT_EQ(this_thread_heap, &no_heap);
    EXPECT_EQ(pop(this_thread_heap, 5), nullptr);
    std::vector<void*> all;
    for (int i = 0; i < 100; ++i) {
        all.push_back(allocate_without_heap(NodeId{i % 2 == 0 ? 1u : 2u}, class_of(80), 80).p);
        ASSERT_NE(all.back(), nullptr);
        EXPECT_EQ(process_heap.space().region_of(all.back()), i % 2 == 0 ? 1u : 2u);
    }
    EXPECT_EQ(std::set<void*>(all.begin(), all.end()).size(), all.size());
    for (void* p : all) release(p);
    EXPECT_EQ(no_heap.room[0], 0);
    for (unsigned c = 1; c < class_count; ++c) ASSERT_EQ(no_heap.head[c], &end_of_list);
    EXPECT_EQ(end_of_list.next, nullptr);
}

// Nobody waits for the threads of other nodes to start, and to end for none.
TEST_F(ThreadHeapTest, ThreadsComeAndGoByNode) {
    std::atomic<int> stage{0};
    run_on(1, [] {});
    std::thread ends = testing::thread_on(2, [&] {
        stage = 1;
        while (stage != 2) std::this_thread::yield();
    });
    while (stage != 1) std::this_thread::yield();
    {
        os::Guard held(process_heap.node(NodeId{2})->attaching);
        run_on(1, [] { release(allocate(Bytes{32})); });
        stage = 2;
        ends.join();
    }
    run_on(2, [] { release(allocate(Bytes{32})); });
}

// A handler of SIGABRT that does not return may be a test framework's.
TEST_F(ThreadHeapTest, ASecondFreeThatIsLeftBySiglongjmpChangesNothing) {
    run_on(3, [] {
        struct sigaction action{};
        struct sigaction before{};
        action.sa_handler = [](int) { siglongjmp(before_second_free, 1); };
        ASSERT_EQ(sigaction(SIGABRT, &action, &before), 0);
        void* volatile p = nullptr;
        for (const bool trusted : {false, true}) {
            if (trusted) trust();
            p = allocate(class_of(64));
            release(p);
            if (sigsetjmp(before_second_free, 1) == 0) release(p);
            check_lists(this_thread_heap);
        }
        sigaction(SIGABRT, &before, nullptr);
    });
}

using ThreadHeapDeathTest = ThreadHeapTest;

// One line each, whether the frees are fast already or not.
TEST_F(ThreadHeapDeathTest, InvalidFreesEndTheProgram) {
    for (const bool trusted : {false, true}) {
        const auto dies = [&](auto make, const char* message) {
            EXPECT_DEATH(
                {
                    attach_thread(NodeId{4});
                    if (trusted) trust();
                    release(make());
                },
                message)
                << (trusted ? "trusted" : "checked");
        };
        static char foreign[64];
        dies([] { return static_cast<void*>(foreign); }, "was not allocated by numalloc");
        char on_stack[64];
        dies([&] { return static_cast<void*>(on_stack); }, "was not allocated by numalloc");
        dies([] { return static_cast<void*>(static_cast<char*>(process_heap.take_big(NodeId{4}, MiB, 1)) + 16); },
             "is not an allocated object");
        dies(
            [] { return static_cast<void*>(static_cast<char*>(process_heap.take_big(NodeId{4}, MiB, 1)) + bag_bytes); },
            "is not an allocated object");
        dies(
            [] {
                void* p = process_heap.take_big(NodeId{4}, MiB, 1);
                release(p);
                return p;
            },
            "was freed already");
        dies(
            [] {
                return static_cast<void*>(
                    static_cast<char*>(process_heap.take_small(NodeId{1}, class_of(64), 1).fresh) + 8);
            },
            "points inside an object");
        dies([] { return reinterpret_cast<void*>(process_heap.space().region(4) + 64); }, "invalid pointer in free");
        dies(
            [] {
                return reinterpret_cast<void*>(process_heap.space().region(7) + process_heap.space().end_offset() - 64);
            },
            "invalid pointer in free");
        dies([] { return reinterpret_cast<void*>(process_heap.space().region(8) + 64); }, "invalid pointer in free");
    }
    // While frees are checked, those inside an object and the second ones are seen too.
    EXPECT_DEATH(
        {
            attach_thread(NodeId{4});
            release(static_cast<char*>(allocate(Bytes{64})) + 16);
        },
        "points inside an object");
    EXPECT_DEATH(
        {
            attach_thread(NodeId{4});
            void* p = allocate(Bytes{64});
            void* q = allocate(Bytes{64});
            release(p);
            release(q);
            release(p);
        },
        "was freed already");
}

}  // namespace
}  // namespace numalloc
