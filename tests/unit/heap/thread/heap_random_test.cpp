// Threads on a made-up machine of eight nodes at random: they allocate, write, pass objects to
// each other, free their own and those of others, end and start again, and move between nodes.
// Contents prove that no object has two owners; afterwards nothing may be left behind. Runs
// under ThreadSanitizer too: there it looks for races in the heap.
#include <atomic>
#include <mutex>
#include <random>
#include <vector>

#include "heap/program_heaps/any_object.h"
#include "heap/thread/attach.h"
#include "support/made_up_clock.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;

constexpr unsigned nodes = 8;
constexpr unsigned threads = 12;
#if defined(__SANITIZE_THREAD__)
constexpr int generations = 3;
constexpr int steps = 4'000;
#else
constexpr int generations = 6;
constexpr int steps = 20'000;
#endif

// An object and what was written to it. Only its ends are written: sizes reach megabytes.
struct Held {
    std::uint64_t* words = nullptr;
    Bytes bytes = 0;
    std::uint64_t mark = 0;

    void write(std::uint64_t m) {
        mark = m;
        words[0] = words[bytes / 8 - 1] = m;
    }
    bool intact() const { return words[0] == mark && words[bytes / 8 - 1] == mark; }
};

// Where threads leave objects for others to free.
class Exchange {
public:
    void leave(const Held& held) {
        std::lock_guard guard(mutex_);
        held_.push_back(held);
    }
    bool fetch(Held& held, unsigned random) {
        std::lock_guard guard(mutex_);
        if (held_.empty()) return false;
        std::swap(held_[random % held_.size()], held_.back());
        held = held_.back();
        held_.pop_back();
        return true;
    }

private:
    std::mutex mutex_;
    std::vector<Held> held_;
};

class Worker {
public:
    Worker(Exchange& exchange, unsigned seed) : exchange_(exchange), random_(seed) {}

    void work() {
        for (int i = 0; i < steps && ok_; ++i) {
            // What comes with time comes however fast the machine is.
            if (i % 64 == 0) testing::advance_clock(1);
            const unsigned what = random_() % 32;
            if (what < 14) take();
            else if (what < 22) give_own();
            else if (what < 26) leave();
            else if (what < 30) give_others();
            else if (what == 30 && i % 64 == 0) rehome_current_thread(NodeId{static_cast<unsigned>(random_() % nodes)});
            else if (what == 31 && i % 64 == 0) disturb();
        }
        while (!own_.empty()) random_() % 2 == 0 ? give_own() : leave();
    }
    bool ok() const { return ok_; }

private:
    Bytes random_size() {
        // Few classes often, so that lists fill and rings are used; all sizes sometimes.
        switch (random_() % 8) {
            case 0: return 16 + random_() % 1024;
            case 1: return 16 + random_() % (32 * KiB);
            case 2: return random_() % 16 == 0 ? small_limit + random_() % (3 * MiB) : 16 + random_() % small_limit;
            default: return 16 + 16 * (random_() % 4);
        }
    }
    void take() {
        const Bytes n = align_up(random_size(), 8);
        bool zeroed = false;
        Held held;
        held.bytes = n;
        if (n > small_limit) {
            void* const block = process_heap.take_big(this_thread_heap->home->node, n, 1);
            held.words = static_cast<std::uint64_t*>(block);
            zeroed = block != nullptr && process_heap.owner(block)->pages.region().is_zero(block, n);
        } else {
            const Allocation object = testing::allocate_object(class_of(n));
            held.words = static_cast<std::uint64_t*>(object.p);
            zeroed = object.zeroed;
        }
        if (!expect(held.words != nullptr, "no memory")) return;
        expect(process_heap.space().region_of(held.words) == this_thread_heap->home->node.value,
               "on the thread's node");
        expect(usable_size(held.words, "test") >= n, "large enough");
        if (zeroed) expect(held.words[n / 8 - 1] == 0 || n <= 8 * 2, "zero as promised");
        held.write(random_());
        own_.push_back(held);
    }
    bool pick(Held& held) {
        if (own_.empty()) return false;
        std::swap(own_[random_() % own_.size()], own_.back());
        held = own_.back();
        own_.pop_back();
        return true;
    }
    void free_it(const Held& held) {
        expect(held.intact(), "contents stand");
        release(held.words);
    }
    void give_own() {
        if (Held held; pick(held)) free_it(held);
    }
    void leave() {
        if (Held held; pick(held)) exchange_.leave(held);
    }
    void give_others() {
        for (int i = 0; i < 4; ++i)
            if (Held held; exchange_.fetch(held, static_cast<unsigned>(random_()))) free_it(held);
    }
    void disturb() {
        switch (random_() % 4) {
            case 0:
                if (random_() % 2 == 0) process_heap.drain();
                else this_thread_heap->home->drain(true);
                process_heap.purge_due();
                break;
            case 1: send_quiet_remote_caches(0); break;
            case 2: flush_thread(); break;
            default: testing::validate_heap(); break;
        }
    }
    bool expect(bool holds, const char* what) {
        if (!holds && ok_) ADD_FAILURE() << what << ", heap of node " << this_thread_heap->home->node.value;
        ok_ = ok_ && holds;
        return holds;
    }

    Exchange& exchange_;
    std::mt19937_64 random_;
    std::vector<Held> own_;
    bool ok_ = true;
};

TEST(HeapRandom, ThreadsOnEightNodes) {
    HeapOptions options;
    options.purge_delay = 20;
    testing::start_heap(nodes, options);
    Exchange exchange;
    for (int generation = 0; generation < generations; ++generation) {
        std::vector<std::thread> running;
        for (unsigned t = 0; t < threads; ++t)
            running.push_back(testing::thread_on(
                (t + static_cast<unsigned>(generation)) % nodes,
                [&exchange, t, generation] { Worker(exchange, static_cast<unsigned>(generation) * 100 + t).work(); }));
        for (auto& t : running) t.join();
        testing::validate_heap();
        if (::testing::Test::HasFailure()) return;
    }
    // What is left is freed by one thread; then every node is empty.
    testing::run_on(0, [&] {
        for (Held held; exchange.fetch(held, 0);) {
            ASSERT_TRUE(held.intact());
            release(held.words);
        }
    });
    process_heap.purge_all();
    testing::validate_heap();
    for (unsigned n = 0; n < nodes; ++n) {
        NodeHeap* node = process_heap.opened(NodeId{n});
        ASSERT_NE(node, nullptr);
        for (unsigned c = 1; c < class_count; ++c) {
            const ClassUse use = node->of(ClassId{c}).use();
            EXPECT_EQ(use.taken, 0u) << "node " << n << " class " << c;
            EXPECT_EQ(use.ring, 0u) << "node " << n << " class " << c;
            EXPECT_EQ(use.bags, 0u) << "node " << n << " class " << c;
        }
        const PageHeapUse use = node->pages.use();
        EXPECT_EQ(use.big_objects, 0u) << "node " << n;
        EXPECT_EQ(use.big_bags, 0u) << "node " << n;
        EXPECT_EQ(use.small_bags, 0u) << "node " << n;
        EXPECT_EQ(use.dirty_bags, 0u) << "node " << n;
    }
}

}  // namespace
}  // namespace numalloc
