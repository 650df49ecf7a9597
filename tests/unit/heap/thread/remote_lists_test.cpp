// What a thread allocates on other nodes than its own, and on the interleaved heap: from the right
// region, in lists of bounded length that are given back, on a made-up machine of three nodes whose
// numbers have gaps.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "heap/program_heaps/any_object.h"
#include "os/clock.h"
#include "statistics/gathering.h"
#include "support/made_up_clock.h"
#include "support/made_up_heap.h"

namespace numalloc::testing {
namespace {

constexpr unsigned nodes = 3;

class RemoteLists : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        if (process_heap.started()) return;
        auto* machine = new MadeUpMachine;  // the topology is for ever
        machine->nodes_file("online", "1,4,6,9").nodes_file("has_memory", "1,6,9");
        machine->node(1, "0", "10 20 30 40")
            .node(4, "1", "20 10 20 30")
            .node(6, "2", "30 20 10 20")
            .node(9, "", "40 30 20 10");
        os::init_topology(machine->reader(), machine->task_reader());
        HeapOptions options;
        options.space = test_space;
        options.thread_slot = align_up(sizeof(ThreadHeap), 64);
        ASSERT_TRUE(process_heap.start(options));
        ASSERT_EQ(process_heap.nodes(), nodes);
        ASSERT_EQ(process_heap.heaps(), nodes + 1);
    }
    void TearDown() override { validate_heap(); }
};

std::uint64_t taken() {
    const auto s = Gathering(Gathering::Depth::heaps).sum();
    return s.small_taken - s.small_ring;
}

TEST_F(RemoteLists, TheMachineIsWhatItSays) {
    const os::Topology& t = os::topology();
    EXPECT_EQ(t.os_node(NodeId{2}), 9u);
    EXPECT_EQ(t.from_os_node(4), no_node) << "no memory";
    EXPECT_TRUE(t.exists(4));
    EXPECT_FALSE(t.exists(5));
    EXPECT_FALSE(t.exists(0));
    EXPECT_EQ(process_heap.interleaved(), NodeId{nodes});
}

TEST_F(RemoteLists, ObjectsComeFromTheirNode) {
    run_on(0, [] {
        for (unsigned n = 0; n <= nodes; ++n)
            for (Bytes size = 1; size <= small_limit; size = size * 3 + 1) {
                const ClassId c = class_of(size);
                for (int i = 0; i < 20; ++i) {
                    void* p = allocate_on(this_thread_heap, NodeId{n}, c, shape_of(c).size).p;
                    ASSERT_NE(p, nullptr);
                    ASSERT_EQ(process_heap.owner(p)->node, NodeId{n});
                    std::memset(p, 0xAB, size);
                    release(p);
                }
            }
    });
    EXPECT_EQ(taken(), 0u) << "an ended thread kept something";
}

TEST_F(RemoteLists, AThreadKeepsFewOfOthers) {
    run_on(1, [] {
        std::vector<void*> objects;
        for (unsigned n = 0; n <= nodes; ++n)
            for (unsigned c = 1; c < class_count; ++c)
                if (NodeId{n} != NodeId{1})
                    objects.push_back(
                        allocate_on(this_thread_heap, NodeId{n}, ClassId{c}, shape_of(ClassId{c}).size).p);
        Bytes in_use = 0;
        for (void* p : objects) in_use += usable_size(p, "test");
        EXPECT_LE(taken() - in_use, policy::remote::budget + 24 * KiB);
        for (void* p : objects) release(p);
        EXPECT_LE(taken(), policy::remote::budget + 24 * KiB);
        send_quiet_remote_caches(0);
        EXPECT_EQ(taken(), 0u) << "what has gone quiet goes home";
    });
}

TEST_F(RemoteLists, FreshObjectsSayThatTheyAreZero) {
    run_on(0, [] {
        unsigned zeroed_ones = 0;
        std::vector<char*> objects;
        for (int i = 0; i < 4000; ++i) {
            const Allocation object = allocate_on(this_thread_heap, NodeId{2}, class_of(2000), 2000);
            auto* p = static_cast<char*>(object.p);
            ASSERT_NE(p, nullptr);
            if (object.zeroed) {
                ++zeroed_ones;
                for (Bytes at = sizeof(Object); at < 2000; ++at) ASSERT_EQ(p[at], 0);
            }
            std::memset(p, 0xCD, 2000);
            objects.push_back(p);
        }
        EXPECT_GT(zeroed_ones, 0u);
        for (char* p : objects) release(p);
    });
}

TEST_F(RemoteLists, AThreadCanLiveOnTheInterleavedHeap) {
    run_on(nodes, [] {
        EXPECT_EQ(this_thread_heap->home->node, process_heap.interleaved());
        std::vector<void*> objects;
        for (int i = 0; i < 5000; ++i) {
            objects.push_back(allocate(class_of(static_cast<Bytes>(i % 3000 + 1))));
            EXPECT_EQ(process_heap.owner(objects.back())->node, process_heap.interleaved());
        }
        // Freed by a thread of a node, they go home by its remote cache.
        run_on(0, [&] {
            for (void* p : objects) release(p);
        });
        void* const big = process_heap.take_big(process_heap.interleaved(), 3 * MiB, 1);
        EXPECT_EQ(process_heap.owner(big)->node, process_heap.interleaved());
        release(big);
    });
    EXPECT_EQ(taken(), 0u);
    EXPECT_GT(Gathering(Gathering::Depth::heaps).of(process_heap.interleaved().value).node.thread_heaps, 0u);
}

TEST_F(RemoteLists, SpillingStaysWithinTheThreadsLimit) {
    run_on(0, [] {
        os::NodeMask only_last;
        only_last.add(2);
        thread_spill_limit = &only_last;
        // A GiB at a time until the region is full: nobody writes to it.
        std::vector<void*> blocks;
        const auto next = [&] {
            blocks.push_back(process_heap.take_big(NodeId{0}, GiB, 1));
            return blocks.back() == nullptr ? no_node : process_heap.owner(blocks.back())->node;
        };
        NodeId from = next();
        while (from == NodeId{0}) from = next();
        EXPECT_EQ(from, NodeId{2}) << "node 1 is nearer, and not allowed";
        while (from == NodeId{2}) from = next();
        EXPECT_EQ(from, no_node);
        thread_spill_limit = nullptr;
        EXPECT_EQ(next(), NodeId{1});
        for (void* p : blocks) release(p);
    });
}

// A full node's threads take small objects of others, whatever shard they have at home: all are seen there.
TEST_F(RemoteLists, SmallObjectsThatSpillAreSeenWhereTheyLie) {
    const ClassId c = class_of(64);
    std::vector<std::thread> others;
    std::atomic<unsigned> there{0};
    std::atomic<bool> stop{false};
    // So that not the first shard of node 0 is free.
    for (int i = 0; i < 3; ++i)
        others.push_back(thread_on(0, [&] {
            ++there;
            stop.wait(false);
        }));
    while (there < others.size()) std::this_thread::yield();
    run_on(0, [&] {
        EXPECT_NE(this_thread_heap->shard, 0);
        std::vector<void*> blocks;
        for (Bytes bytes = GiB; bytes >= bag_bytes; bytes /= 2) {
            NodeId from{0};
            while (from == NodeId{0}) {
                blocks.push_back(process_heap.take_big(NodeId{0}, bytes, 1));
                from = process_heap.owner(blocks.back())->node;
            }
        }
        const std::uint64_t before = process_heap.node(NodeId{1})->of(c).use().taken;
        std::vector<void*> spilled;
        for (int i = 0; i < 3000; ++i) spilled.push_back(allocate(c));
        const auto on_other = std::count_if(spilled.begin(), spilled.end(),
                                            [](void* p) { return process_heap.owner(p)->node == NodeId{1}; });
        EXPECT_GT(on_other, 2000);
        EXPECT_GE(process_heap.node(NodeId{1})->of(c).use().taken, before + std::uint64_t(on_other));
        for (void* p : spilled) release(p);
        for (void* p : blocks) release(p);
    });
    stop = true;
    stop.notify_all();
    for (std::thread& other : others) other.join();
    process_heap.purge_all();
    EXPECT_EQ(process_heap.node(NodeId{1})->of(c).use().bags, 0u);
    EXPECT_EQ(process_heap.node(NodeId{1})->pages.use().small_bags, 0u);
}

// Lists that are used in turn rest side by side, whatever their nodes and classes: nothing is fetched again.
TEST_F(RemoteLists, NoListSendsAnotherAway) {
    struct List {
        unsigned node, c;
    };
    const List lists[][3] = {
        {{1, 34}, {2, 3}, {3, 36}}, {{1, 34}, {2, 31}, {3, 28}}, {{1, 8}, {1, 16}, {2, 24}}, {{1, 5}, {2, 5}, {3, 5}}};
    run_on(0, [&] {
        for (const auto& turn : lists) {
            std::vector<void*> all;
            // What the nodes do not have, in bags or rings.
            const auto out = [&] {
                std::uint64_t objects = 0;
                for (const List& list : turn) {
                    const ClassUse use = process_heap.node(NodeId{list.node})->of(ClassId{list.c}).use();
                    objects += use.taken - use.ring;
                }
                return objects;
            };
            const auto one_of_each = [&] {
                for (const List& list : turn)
                    all.push_back(allocate_on(this_thread_heap, NodeId{list.node}, ClassId{list.c},
                                              shape_of(ClassId{list.c}).size)
                                      .p);
            };
            one_of_each();
            const std::uint64_t before = out();
            for (int i = 0; i < 4; ++i) {
                one_of_each();
                EXPECT_EQ(out(), before) << "classes " << turn[0].c << ", " << turn[1].c << ", " << turn[2].c;
            }
            for (void* p : all) release(p);
            flush_thread();
        }
    });
}

TEST_F(RemoteLists, OnlyBigObjectsMove) {
    run_on(0, [] {
        void* const big = process_heap.take_big(NodeId{0}, 2 * MiB, 1);
        auto* p = static_cast<char*>(big);
        std::memset(p, 1, 2 * MiB);
        EXPECT_EQ(process_heap.move_big(locate(p + bag_bytes), NodeId{1}), EINVAL);
        EXPECT_EQ(process_heap.move_big(locate(p + 16), NodeId{1}), EINVAL);
        void* small = allocate(100);
        EXPECT_EQ(process_heap.move_big(locate(small), NodeId{1}), EINVAL);
        release(small);
        // There are no such nodes here, and in containers no binding at all: a refusal changes nothing.
        const int error = process_heap.move_big(locate(p), NodeId{1});
        EXPECT_NE(error, 0);
        EXPECT_FALSE(process_heap.any_moved());
        EXPECT_EQ(process_heap.node_of(locate(p)), NodeId{0});
        for (Bytes i = 0; i < 2 * MiB; ++i) ASSERT_EQ(p[i], 1);
        release(p);
    });
}

// Uses other sizes until every kind of housekeeping that is due has had its slow path: each looks at the clock once,
// and does one kind at most.
void work() {
    std::vector<void*> objects(2'000);
    for (void*& p : objects) p = allocate(400);
    for (void* p : objects) release(p);
}

// A visit passes over a ring that was used since the last one, so the second visit sorts it. One thread waits: when the
// last of a node ends, its rings are drained at once.
TEST_F(RemoteLists, ANodesRingsAreSortedByItsOwnThreadsAndByOthersLater) {
    const ClassId c = class_of(64);
    constexpr std::uint32_t period = policy::housekeeping::period;
    constexpr std::uint32_t left_to_own = period + policy::housekeeping::left_to_own_threads;
    std::latch attached(1);
    std::latch done(1);
    std::thread waits = thread_on(1, [&] {
        attached.count_down();
        done.wait();
    });
    attached.wait();
    const auto ring = [&] { return process_heap.node(NodeId{1})->of(c).use().ring; };
    const auto fill = [&] {
        process_heap.node(NodeId{1})->next_drain.store(os::milliseconds() + period);
        run_on(1, [] {
            std::vector<void*> objects(5'000);
            for (void*& p : objects) p = allocate(64);
            for (void* p : objects) release(p);
        });
        ASSERT_GT(ring(), 0u);
    };
    // A thread of the node works now, after `time` milliseconds, and once a period between.
    const auto work_on = [&](unsigned node, std::uint32_t time) {
        run_on(node, [=] {
            work();
            for (std::uint32_t left = time; left > 0;) {
                const std::uint32_t step = min_of(left, period);
                advance_clock(step);
                left -= step;
                work();
            }
        });
    };
    for (const std::uint32_t clock : {clock_start, before_wrap(1), before_wrap(period), before_wrap(left_to_own)}) {
        set_clock(clock);
        fill();
        const auto full = ring();
        work_on(1, 2 * period - 1);
        EXPECT_EQ(ring(), full) << "before its time";
        work_on(1, 1);
        EXPECT_EQ(ring(), 0u);

        fill();
        work_on(0, left_to_own - 1);
        work_on(1, 0);
        EXPECT_EQ(ring(), full);
        work_on(1, period);
        EXPECT_EQ(ring(), 0u) << "a thread of another node came before those of this one";

        fill();
        work_on(0, 2 * left_to_own - 1);
        EXPECT_EQ(ring(), full) << "before its time";
        // Each of the two visits may be up to a period late.
        work_on(0, 2 * period);
        EXPECT_EQ(ring(), 0u) << "no thread of the node works: others do it";
    }
    done.count_down();
    waits.join();
}

}  // namespace
}  // namespace numalloc::testing
