// fork() while other threads are in the middle of everything: the child has a whole heap.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <vector>

#include "heap/thread/deferred.h"
#include "heap/thread/fork.h"
#include "support/in_child.h"
#include "support/made_up_clock.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::in_child;
using testing::release;
using testing::run_on;

constexpr unsigned nodes = 4;

class HeapForkTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(nodes); }
};

// Threads that never rest, on all nodes, with remote frees.
class Noise {
public:
    Noise() {
        for (unsigned t = 0; t < nodes; ++t)
            threads_.push_back(testing::thread_on(t % nodes, [this, t] {
                std::mt19937 random(t);
                std::vector<void*> held;
                ++running_;
                while (!stop_) {
                    if (random() % 64 == 0) testing::advance_clock(1);
                    held.push_back(allocate(Bytes{16} << random() % 14));
                    void* others = slot_[random() % 16].exchange(held.back());
                    held.pop_back();
                    if (others != nullptr) release(others);
                    if (random() % 512 == 0) send_quiet_remote_caches(0);
                    if (random() % 4096 == 0) process_heap.purge_all();
                }
            }));
        // A fork before they have their heaps would test nothing.
        while (running_ < nodes) std::this_thread::yield();
    }
    ~Noise() {
        stop_ = true;
        for (auto& t : threads_) t.join();
        run_on(0, [this] {
            for (auto& slot : slot_)
                if (void* p = slot.exchange(nullptr)) release(p);
        });
    }

private:
    std::atomic<bool> stop_{false};
    std::atomic<unsigned> running_{0};
    std::atomic<void*> slot_[16] = {};
    std::vector<std::thread> threads_;
};

[[maybe_unused]] bool everything_works() {  // not used under ThreadSanitizer
    for (unsigned n = 0; n < nodes; ++n) {
        if (!attach_thread(NodeId{n})) return false;
        std::vector<void*> held;
        for (unsigned c = 1; c < class_count; ++c)
            for (int i = 0; i < 5; ++i) {
                void* p = allocate(ClassId{c});
                if (p == nullptr || process_heap.space().region_of(p) != n) return false;
                std::memset(p, 0x77, 16);  // faults the page; whole objects would take seconds a fork
                std::memset(static_cast<char*>(p) + size_of_class(c) - 16, 0x77, 16);
                held.push_back(p);
            }
        for (void* p : held) release(p);
        detach_thread();
    }
    process_heap.purge_all();
    testing::validate_heap();
    return true;
}

#if !defined(__SANITIZE_THREAD__)  // which has no fork in threaded programs
TEST_F(HeapForkTest, TheChildsHeapIsWholeWhateverOthersWereDoing) {
    Noise noise;
    for (int i = 0; i < 25; ++i) ASSERT_EQ(in_child(everything_works), 0) << "fork " << i;
}

TEST_F(HeapForkTest, ChildrenForkAgain) {
    Noise noise;
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(in_child([] { return everything_works() && in_child(everything_works) == 0 && everything_works(); }),
                  0);
}

TEST_F(HeapForkTest, TheChildsOnlyThreadKeepsItsHeapAndItsObjects) {
    run_on(1, [] {
        void* p = allocate(Bytes{64});
        std::memset(p, 0x33, 64);
        Noise noise;
        ASSERT_EQ(in_child([p] {
                      if (static_cast<char*>(p)[63] != 0x33) return false;
                      release(p);
                      void* q = allocate(Bytes{64});
                      return q == p && process_heap.space().region_of(q) == 1;
                  }),
                  0);
        release(p);
    });
}

// The heaps of threads that the child does not have serve its new ones.
TEST_F(HeapForkTest, HeapsOfThreadsLeftBehindAreReused) {
    Noise noise;
    ASSERT_EQ(in_child([] {
                  const std::uint32_t made = process_heap.node(NodeId{2})->slots.made();
                  if (!attach_thread(NodeId{2})) return false;
                  release(allocate(Bytes{32}));
                  return process_heap.node(NodeId{2})->slots.made() == made;
              }),
              0);
}
// Handlers of others may run between ours: the forking thread allocates, in the parent and in the child.
TEST_F(HeapForkTest, TheForkingThreadMayAllocateBetweenTheHandlers) {
    Noise noise;
    run_on(1, [] {
        const auto use = [] {
            for (unsigned c = 1; c < class_count; ++c) release(allocate(ClassId{c}));
            flush_thread();
            process_heap.purge_all();
        };
        for (int i = 0; i < 10; ++i) {
            heap_fork_prepare();
            use();
            const pid_t child = fork();
            if (child == 0) {
                alarm(testing::child_limit);
                use();
                heap_fork_child();
                use();
                _exit(0);
            }
            use();
            heap_fork_parent();
            int status = -1;
            waitpid(child, &status, 0);
            ASSERT_EQ(status, 0);
        }
    });
}

// What threads had freed of other nodes and not yet sent is not lost to the child.
TEST_F(HeapForkTest, RemoteCachesLeftBehindAreSent) {
    std::atomic<int> stage{0};
    void* p = nullptr;
    run_on(1, [&] { p = allocate(Bytes{48}); });
    std::thread other = testing::thread_on(0, [&] {
        release(p);
        stage = 1;
        while (stage == 1) std::this_thread::yield();
    });
    while (stage == 0) std::this_thread::yield();
    EXPECT_EQ(in_child([] {
                  bool waits = false;
                  for_each_thread_heap([&](ThreadHeap* h) { waits |= !h->remote_cache.empty(); });
                  send_quiet_remote_caches(0);
                  for_each_thread_heap([&](ThreadHeap* h) { waits &= h->remote_cache.empty(); });
                  return waits;
              }),
              0);
    stage = 2;
    other.join();
}

#endif

// While the gate closes and opens, others come and go, and with them their marks.
TEST_F(HeapForkTest, ThreadsComeAndGoWhileTheParentLetsGo) {
    std::atomic<bool> stop{false};
    std::atomic<int> came{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t)
        threads.emplace_back([&stop, &came, t] {
            while (!stop) {
                ASSERT_TRUE(attach_thread(NodeId{t}));
                // As the first slow path does: a heap that could not be returned at once waits for that.
                if (const os::Inside inside; inside) run_deferred(attached_heap);
                detach_thread();
                ++came;
            }
        });
    while (came < 5000) {
        heap_fork_prepare();
        heap_fork_parent();
    }
    stop = true;
    for (std::thread& t : threads) t.join();
    run_on(0, [] { release(allocate(Bytes{500})); });
}

// A thread that was stopped inside, and a signal handler that interrupted the heap, must not stop a _Fork().
TEST_F(HeapForkTest, WhoMustNotWaitLongGivesUp) {
    os::fork_gate.start();
    std::atomic<int> stage{0};
    std::thread stopped = testing::thread_on(0, [&] {
        os::fork_gate.enter();
        stage = 1;
        while (stage == 1) std::this_thread::yield();
        os::fork_gate.leave();
    });
    while (stage == 0) std::this_thread::yield();
    EXPECT_FALSE(heap_fork_prepare_briefly());
    EXPECT_FALSE(os::fork_gate.is_closed());
    stage = 2;
    stopped.join();
    os::fork_gate.enter();
    EXPECT_FALSE(heap_fork_prepare_briefly());
    os::fork_gate.leave();
    std::thread other([&] {
        os::fork_gate.close();
        stage = 3;
        while (stage == 3) std::this_thread::yield();
        os::fork_gate.open();
    });
    while (stage == 2) std::this_thread::yield();
    EXPECT_FALSE(heap_fork_prepare_briefly());
    stage = 4;
    other.join();
    ASSERT_TRUE(heap_fork_prepare_briefly());
    EXPECT_TRUE(os::fork_gate.is_closed());
    heap_fork_parent();
    EXPECT_FALSE(os::fork_gate.is_closed());
}

TEST_F(HeapForkTest, TheParentGoesOn) {
    heap_fork_prepare();
    heap_fork_parent();
    run_on(3, [] { release(allocate(Bytes{500})); });
    testing::validate_heap();
}

}  // namespace
}  // namespace numalloc
