// What the lists of many threads may hold, by the CPUs that they run on.
#include "heap/thread/held.h"

#include <atomic>
#include <barrier>
#include <vector>

#include "support/made_up_heap.h"

namespace {

thread_local int made_up_cpu = 0;

}  // namespace

// os::cpu_at_once()
extern "C" int __wrap__ZN8numalloc2os11cpu_at_onceEv() { return made_up_cpu; }

namespace numalloc {
namespace {

constexpr unsigned threads = 24;

// Threads of one node free more than they may hold, on `cpus` CPUs, while 400 MiB are in use. What the node has granted
// to all of them.
Bytes granted_on(unsigned node, unsigned cpus) {
    process_heap.node(NodeId{node})->list_budget.set_in_use(400 * MiB);
    std::atomic<Bytes> all{0};
    std::barrier step(threads);
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.push_back(testing::thread_on(node, [&, t] {
            made_up_cpu = static_cast<int>(t % cpus);
            ThreadHeap* const h = this_thread_heap;
            h->slow_paths = policy::lists::slow_paths_to_double * policy::lists::most_doublings;
            step.arrive_and_wait();
            std::vector<void*> objects;
            for (unsigned c = 1; c < class_count; ++c)
                for (unsigned i = 0; i < 4U * shape_of(ClassId{c}).batch; ++i)
                    objects.push_back(testing::allocate(ClassId{c}));
            for (void* p : objects) testing::release(p);
            EXPECT_LE(h->may_hold, policy::lists::any_may_hold + h->granted);
            all += h->granted;
            step.arrive_and_wait();
        }));
    for (std::thread& t : running) t.join();
    return all;
}

TEST(Held, TheBudgetGrowsWithTheCpusThatThreadsRunOn) {
    testing::start_heap(2);
    for (int round = 0; round < 2; ++round) {  // threads that end give theirs back
        const Bytes granted = granted_on(0, 1);
        EXPECT_GT(granted, policy::lists::any_node_may_hold / 2);
        EXPECT_LE(granted, policy::lists::any_node_may_hold);
    }
    const Bytes granted = granted_on(1, threads);
    EXPECT_GT(granted, policy::lists::any_node_may_hold);
    EXPECT_LE(granted, threads * policy::lists::for_each_running);
    testing::validate_heap();
}

}  // namespace
}  // namespace numalloc
