// Maintenance where a program has few slow paths, or none: after threads that have ended, or with one block at a time.
#include "heap/thread/housekeeping.h"

#include <barrier>
#include <string>
#include <vector>

#include "heap/program_heaps/any_object.h"
#include "support/made_up_clock.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

std::uint64_t in_rings(NodeHeap* node) {
    std::uint64_t objects = 0;
    for (unsigned c = 1; c < class_count; ++c) objects += node->of(ClassId{c}).use().ring;
    return objects;
}

// Threads of node 1 that hold objects at the same time, free them, and end one after the other while the first
// `waiting` of them are still there.
void team(unsigned threads, unsigned waiting) {
    testing::advance_clock(policy::ended_threads::pauses_of_rest * policy::ended_threads::longest_pause);
    std::barrier all(threads);
    std::barrier rest(waiting + 1);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.push_back(testing::thread_on(1, [&, t] {
            std::vector<void*> objects;
            for (unsigned c = 1; c <= 60; ++c)
                for (unsigned i = 0; i < 4U * shape_of(ClassId{c}).batch; ++i)
                    objects.push_back(testing::allocate(ClassId{c}));
            all.arrive_and_wait();
            for (void* p : objects) testing::release(p);
            all.arrive_and_wait();
            if (t < waiting) rest.arrive_and_wait();
        }));
    for (unsigned t = waiting; t < threads; ++t) running[t].join();
    NodeHeap* const node = process_heap.node(NodeId{1});
    EXPECT_EQ(node->slots.taken(), waiting);
    EXPECT_EQ(in_rings(node), 0U) << waiting << " of " << threads << " threads are left";
    rest.arrive_and_wait();
    for (unsigned t = 0; t < waiting; ++t) running[t].join();
    EXPECT_EQ(in_rings(node), 0U);
    const PageHeapUse use = node->pages.use();
    EXPECT_LE(Bytes{use.dirty_bags} << bag_shift, policy::dirty::floor) << "purged";
}

// A program whose fast paths find all else, but for one block at a time.
void one_at_a_time(void (*take_and_free)()) {
    testing::run_on(1, [=] {
        const ClassId small = class_of(200);
        const auto take = [&](Bytes bytes) {
            std::vector<void*> objects(bytes / shape_of(small).size);
            for (void*& p : objects) p = testing::allocate(small);
            return objects;
        };
        const std::vector<void*> stay = take(40 * MiB), go = take(8 * MiB);
        take_and_free();
        for (void* p : go) testing::release(p);
        NodeHeap* const node = process_heap.node(NodeId{1});
        EXPECT_GE(Bytes{node->pages.use().dirty_bags} << bag_shift, 6 * MiB) << "waits for purge_delay";
        EXPECT_GT(in_rings(node), 0U);
        for (int i = 0; i < 100; ++i) {
            testing::advance_clock(policy::housekeeping::period);
            take_and_free();
        }
        EXPECT_LE(Bytes{node->pages.use().dirty_bags} << bag_shift, 1 * MiB);
        EXPECT_EQ(in_rings(node), 0U);
        for (void* p : stay) testing::release(p);
    });
    testing::validate_heap();
}

// The only object of its list.
TEST(Housekeeping, OneLargeBlockAtATimeReturnsWhatRested) {
    testing::start_heap(2);
    one_at_a_time([] { testing::release(testing::allocate(64 * KiB)); });
}

TEST(Housekeeping, OneBigBlockAtATimeReturnsWhatRested) {
    testing::start_heap(2);
    one_at_a_time([] { testing::release(allocate_big(this_thread_heap, NodeId{1}, 1 * MiB, 1)); });
}

// Frees most of objects that share their bags with others in use, and waits. Returns the bytes that went.
Bytes idle_beside_used(std::int32_t purge_delay) {
    testing::start_heap(2);
    Bytes went = 0;
    testing::run_on(1, [&went, purge_delay] {
        process_heap.set_purge_delay(purge_delay);
        std::vector<void*> buffers(200);
        for (void*& p : buffers) p = testing::allocate(100 * KiB);
        for (std::size_t i = 0; i < buffers.size(); ++i)
            if (i % 4 != 0) testing::release(buffers[i]);
        NodeHeap* const node = process_heap.node(NodeId{1});
        const Bytes before = node->pages.use().returned_bytes;
        for (int i = 0; i < 200; ++i) {
            testing::advance_clock(policy::housekeeping::period);
            testing::release(testing::allocate(1 * KiB));
            testing::release(testing::allocate(64 * KiB));
        }
        went = node->pages.use().returned_bytes - before;
        unsigned without_mark = 0;
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            const Location at = locate(buffers[i]);
            if (i % 4 == 0) {
                EXPECT_TRUE(begins_in_use(at, buffers[i]));
                testing::release(buffers[i]);
            } else if (const char* why = at.found == Found::small ? why_invalid(at, buffers[i]) : nullptr;
                       why != nullptr && why == std::string("was freed already")) {
                // A second free, and a realloc, find it without its mark.
                if (!was_freed(static_cast<const Object*>(buffers[i]))) ++without_mark;
                EXPECT_FALSE(begins_in_use(at, buffers[i]));
            }
        }
        EXPECT_EQ(without_mark > 0, went > 0);
        process_heap.set_purge_delay(1000);
    });
    testing::validate_heap();
    return went;
}

TEST(Housekeeping, PagesOfIdleObjectsGoBack) { EXPECT_GE(idle_beside_used(1000), 5 * MiB); }
TEST(Housekeeping, PagesOfIdleObjectsGoBackAtOnce) { EXPECT_GE(idle_beside_used(0), 5 * MiB); }
TEST(Housekeeping, PagesOfIdleObjectsStayForEver) { EXPECT_EQ(idle_beside_used(-1), 0U); }

TEST(Housekeeping, WhatEndedThreadsLeftGoesBack) {
    testing::start_heap(2);
    team(12, 4);
    testing::validate_heap();
}

}  // namespace
}  // namespace numalloc
