// A program whose sizes change: ten phases, each of objects twice as large as in the one before, replaced at random and
// all freed before the next. What one phase leaves must serve the next, at the scale of ordinary programs (15 MiB a
// thread) too, where no threshold of hundreds of mebibytes helps. phases THREADS: peak resident set against what is
// live at most (15 MiB a thread). Reached: 23 to 26 MiB with one thread, the more the faster the machine, 81 with four
// (64 and 224 before idle lists were let go of, the same and 100 before each thread had its own shard of the bags);
// glibc's 20 and 72 are out of reach of size classes.
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t slots = 20000;
constexpr int phases = 10;

// The sum over the threads of the most that each has live, by what it asked for.
std::atomic<std::size_t> most_live{0};

void work(std::uint64_t seed) {
    testing_support::Random random(seed);
    std::vector<void*> blocks(slots);
    std::vector<std::size_t> sizes(slots);
    std::size_t most = 0;
    for (int phase = 0; phase < phases; ++phase) {
        const std::size_t base = std::size_t{16} << phase;
        // From 1 KiB on fewer, so that about the same amount is live.
        const std::size_t count = phase > 5 ? slots >> (phase - 5) : slots;
        std::size_t live = 0;
        for (std::size_t i = 0; i < 10 * slots; ++i) {
            const std::size_t k = random.below(count);
            free(blocks[k]);
            live -= sizes[k];
            sizes[k] = base + random.below(base);
            live += sizes[k];
            blocks[k] = malloc(sizes[k]);
            CHECK(blocks[k] != nullptr);
            std::memset(blocks[k], 1, sizes[k]);
            if (live > most) most = live;
        }
        for (std::size_t k = 0; k < slots; ++k) {
            free(blocks[k]);
            blocks[k] = nullptr;
            sizes[k] = 0;
        }
    }
    most_live += most;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 2);
    const int count = std::atoi(argv[1]);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(work, 70 + static_cast<std::uint64_t>(i));
    for (std::thread& t : threads) t.join();
    rusage usage{};
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    const double peak = static_cast<double>(usage.ru_maxrss) / 1024,
                 live = static_cast<double>(most_live.load()) / (1 << 20);
    const double bound = 1.6 * live + 4;
    std::printf("%d threads: peak %.1f MiB, live %.1f, bound %.1f%s\n", count, peak, live, bound,
                peak > bound ? "  MISSED" : "");
    return peak > bound ? 1 : 0;
}
