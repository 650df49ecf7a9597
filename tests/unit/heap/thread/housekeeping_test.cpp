// Maintenance that no slow path of a thread does: after threads that have ended.
#include "heap/thread/housekeeping.h"

#include <barrier>
#include <vector>

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

TEST(Housekeeping, WhatEndedThreadsLeftGoesBack) {
    testing::start_heap(2);
    team(12, 4);
    testing::validate_heap();
}

}  // namespace
}  // namespace numalloc
