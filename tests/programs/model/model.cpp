// Random use of the whole interface by threads that come and go, hand blocks to each other, and
// check everything they own. The seed is printed; NUMALLOC_TEST_SEED repeats it (as far as the
// scheduler allows), NUMALLOC_TEST_SECONDS and NUMALLOC_TEST_THREADS set length and width, NUMALLOC_TEST_LARGE
// how many of a hundred blocks are large.
#include <pthread.h>

#include <atomic>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "model/operations.h"

namespace {

using model::Block;
using testing_support::Random;

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::atomic<std::uint64_t> next_number{1};
std::atomic<std::uint64_t> operations{0};
std::atomic<std::uint64_t> crossed{0};  // blocks that changed hands
std::atomic<bool> stop{false};

// Where threads leave blocks for each other: a block put in takes out what lay there.
constexpr std::size_t mailbox_count = 512;
struct Mailbox {
    std::mutex lock;
    Block block;
};
Mailbox mailboxes[mailbox_count];

// The live ranges of one check: only used by the exact phase, which one thread runs.
class Ranges {
public:
    void add(const Block& b) {
        const auto begin = reinterpret_cast<std::uintptr_t>(b.p);
        const auto after = ranges_.upper_bound(begin);
        if (after != ranges_.end() && after->first < begin + b.size) report(b, "overlaps the block after it", 0);
        if (after != ranges_.begin() && std::prev(after)->second > begin) report(b, "overlaps the block before it", 0);
        ranges_[begin] = begin + (b.size == 0 ? 1 : b.size);
    }
    void remove(const Block& b) { ranges_.erase(reinterpret_cast<std::uintptr_t>(b.p)); }

private:
    std::map<std::uintptr_t, std::uintptr_t> ranges_;
};

// A set of blocks within a budget of bytes.
class Player {
public:
    Player(std::uint64_t seed, std::size_t slots, std::size_t budget, Ranges* ranges = nullptr)
        : random_(seed), slots_(slots), budget_(budget), ranges_(ranges) {}

    void play(std::uint64_t steps) {
        std::uint64_t done = 0;
        for (; done < steps && !stop.load(std::memory_order_relaxed); ++done) step();
        operations.fetch_add(done);
    }

    void release_all() {
        for (Block& b : slots_)
            if (b.p != nullptr) drop(b);
    }

    // A thread that ends leaves its blocks to its successor.
    std::vector<Block> take_slots() { return std::move(slots_); }
    void give_slots(std::vector<Block> slots) {
        slots_ = std::move(slots);
        live_ = 0;
        for (const Block& b : slots_)
            if (b.p != nullptr) live_ += b.size;
    }

private:
    void step() {
        Block& b = slots_[random_.below(slots_.size())];
        const auto die = random_.below(100);
        if (b.p == nullptr) {
            if (live_ < budget_) take(b);
        } else if (die < 55 || live_ > budget_) {
            drop(b);
        } else if (die < 75 && is_malloc(b)) {
            if (ranges_ != nullptr) ranges_->remove(b);
            live_ -= b.size;
            model::resize(random_, b, next_number.fetch_add(1));
            live_ += b.size;
            if (ranges_ != nullptr) ranges_->add(b);
        } else if (die < 90 && ranges_ == nullptr) {
            exchange(b);
        } else {
            model::verify(b);
        }
        if (random_.below(20000) == 0) rare();
    }

    // Calls that stop the heap to look at it, in the middle of everything.
    void rare() {
        switch (random_.below(4)) {
            case 0: malloc_trim(0); break;
            case 1: (void)mallinfo2(); break;
            case 2: CHECK(malloc(SIZE_MAX / 2) == nullptr); break;
            default: {
                // A burst of one class, so that hand-overs happen while others do the same.
                void* burst[600];
                const std::size_t size = 16 << random_.below(8);
                for (void*& p : burst) {
                    p = malloc(size);
                    std::memset(p, 0xB0, size);
                }
                for (void* p : burst) free(p);
            }
        }
    }

    static bool is_malloc(const Block& b) {
        return b.origin == model::Origin::malloc || b.origin == model::Origin::aligned;
    }

    void take(Block& b) {
        b = model::allocate(random_, next_number.fetch_add(1));
        live_ += b.size;
        if (ranges_ != nullptr) ranges_->add(b);
    }

    void drop(Block& b) {
        if (ranges_ != nullptr) ranges_->remove(b);
        live_ -= b.size;
        model::release(random_, b);
        b = Block{};
    }

    void exchange(Block& b) {
        Mailbox& box = mailboxes[random_.below(mailbox_count)];
        const std::size_t mine = b.size;
        {
            const std::lock_guard guard(box.lock);
            std::swap(b, box.block);
        }
        live_ -= mine;
        if (b.p != nullptr) {
            live_ += b.size;
            crossed.fetch_add(1, std::memory_order_relaxed);
            model::verify(b);
        }
    }

    Random random_;
    std::vector<Block> slots_;
    std::size_t live_ = 0;
    std::size_t budget_;
    Ranges* ranges_;
};

// One lane: a chain of short-lived threads, each going on with the blocks of the one before.
void lane(std::uint64_t seed, std::size_t slots, std::size_t budget) {
    std::vector<Block> inherited(slots);
    for (std::uint64_t generation = 0; !stop.load(); ++generation) {
        std::thread([&] {
            Player player(seed + generation * 1000003, slots, budget);
            player.give_slots(std::move(inherited));
            player.play(20000);
            inherited = player.take_slots();
        }).join();
    }
    Player last(seed, slots, budget);
    last.give_slots(std::move(inherited));
    last.release_all();
}

}  // namespace

int main() {
    testing_support::require_library();
    const double seconds = static_cast<double>(testing_support::number_from_environment(
        "NUMALLOC_TEST_SECONDS", std::getenv("NUMALLOC_TEST_LONG") ? 600 : 15));
    const long lanes = testing_support::number_from_environment("NUMALLOC_TEST_THREADS", 6);
    const auto seed = static_cast<std::uint64_t>(testing_support::number_from_environment(
        "NUMALLOC_TEST_SEED", static_cast<long>(time(nullptr) * 1000 + getpid() % 1000)));
    std::printf("NUMALLOC_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);

    // First alone, with every live range known exactly.
    {
        Ranges ranges;
        Player exact(seed, 3000, std::size_t{64} << 20, &ranges);
        exact.play(300000);
        exact.release_all();
    }

    // Large blocks: all of a thread's fit into its budget at once, so that they live long enough to grow.
    const std::size_t slots = model::large_percent != 0 ? 6 : 1500;
    const std::size_t budget = std::size_t{model::large_percent != 0 ? 128U : 32U} << 20;
    std::vector<std::thread> threads;
    for (long i = 0; i < lanes; ++i)
        threads.emplace_back(lane, seed + static_cast<std::uint64_t>(i + 1) * 7777777, slots, budget);
    const double end = now() + seconds;
    // A run that did next to nothing proves nothing: on a busy machine it takes longer (ctest's
    // time-out is the bound).
    while (now() < end || operations.load() <= 500000 || crossed.load() <= 1000) {
        timespec pause{0, 50000000};
        nanosleep(&pause, nullptr);
    }
    stop = true;
    for (std::thread& t : threads) t.join();
    stop = false;
    Random random(seed);
    for (Mailbox& box : mailboxes)
        if (box.block.p != nullptr) model::release(random, box.block);

    std::printf("%llu operations, %llu blocks changed hands\n", static_cast<unsigned long long>(operations.load()),
                static_cast<unsigned long long>(crossed.load()));
    malloc_trim(0);
    const long settled = testing_support::resident_kib();
    std::printf("%ld KiB resident at the end\n", settled);
    CHECK(settled < 128 * 1024 || testing_support::any_allocator() || !testing_support::judges_resident_memory());
}
