// How often threads of one node meet: the build that counts says how many shared locks, tries, sleeps and objects
// walked under a lock a malloc and its free cost, in steady state. Counts, not times: on any machine as on one of 64
// CPUs.
//
//   contention WORK THREADS      prints one line, and fails where a count is above its limit
//   WORK  own, exchanged         16 B to 1 KiB, random replacement; freed by the thread itself, or by any
//         medium, large          4 to 32 KiB, 40 to 500 KiB, random replacement
//         bursts                 4 MiB of 256 B, and all of it freed, in a random order
//         parfree                one thread builds, others free at random: counted are the frees
//
// NUMALLOC_TEST_SHOW=1: only prints.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

using testing_support::Random;

namespace {

// Names of src/os/counts.def.
constexpr const char* names[] = {
    "locks_initialise", "locks_threads",  "locks_thread_pool", "locks_bound_heap",  "locks_size_class", "locks_growth",
    "locks_pages",      "locks_metadata", "failed_try_locks",  "foreign_try_locks", "walked",           "futex_sleeps",
    "hand_overs",       "locked_batches", "refills",           "common_lists"};
constexpr unsigned lock_ranks = 8;
enum {
    failed = lock_ranks,
    foreign,
    walked,
    sleeps,
    hand_overs,
    locked_batches,
    refills,
    common_lists,
    count_of_names
};
static_assert(std::size(names) == count_of_names);

unsigned long long (*counted)(const char*);

struct Counts {
    double of[count_of_names];
    static Counts now() {
        Counts c;
        for (unsigned i = 0; i < count_of_names; ++i) c.of[i] = double(counted(names[i]));
        return c;
    }
    // A malloc and free, of so many.
    static Counts of_each(const Counts& before, const Counts& after, double pairs) {
        Counts c;
        for (unsigned i = 0; i < count_of_names; ++i) c.of[i] = (after.of[i] - before.of[i]) / pairs;
        return c;
    }
    double locks() const {
        double sum = 0;
        for (unsigned i = 0; i < lock_ranks; ++i) sum += of[i];
        return sum;
    }
};

constexpr unsigned most_threads[] = {2, 16, 64, 256, 512};
constexpr std::size_t rows = std::size(most_threads);

struct Work {
    const char* name;
    unsigned least, most;  // bytes of an object
    unsigned live;         // objects of a thread
    long pairs;            // of all threads together, at least
    // What is allowed, per malloc and free: shared locks by the number of threads, foreign tries and objects walked by
    // any.
    double locks[rows], foreign, walked;
};

// Lists may hold a quarter of what is in use (heap/node/list_budget.h), which is little for many threads that have
// 1,000 small objects each, and what suffices for 64 CPUs, which is little for 256 threads with large ones. Allowed is
// 1.3 to 2.5 times what was measured. With 20 MiB, whatever the CPUs, 64 threads have 2.7 (medium) and 2.6 (large), and
// as many as now of the small ones. Before lists were handed over without locks 16 threads had .006 locks (exchanged),
// .64 (medium; .42 foreign tries), 14.6 (large; 11.8), and walked 1.8 (bursts) and 1.0 objects (parfree, .010 locks)
// while they held one.
constexpr Work works[] = {
    {"own", 16, 1024, 1000, 4'000'000, {0.001, 0.02, 0.6, 0.25, 0.05}, 0.01, 0.01},
    {"exchanged", 16, 1024, 1000, 4'000'000, {0.001, 0.07, 0.55, 0.25, 0.06}, 0.01, 0.01},
    {"medium", 4096, 32768, 300, 1'000'000, {0.1, 0.06, 0.21, 3.6, 4.5}, 0.01, 0.01},
    {"large", 40'000, 500'000, 20, 200'000, {3.0, 0.25, 0.25, 1.7, 3.8}, 0.01, 0.01},
    {"bursts", 256, 256, 16'384, 4'000'000, {0.06, 0.07, 0.07, 0.2, 0.35}, 0.01, 0.01},
    {"parfree", 64, 64, 0, 3'000'000, {0.005, 0.005, 0.005, 0.005, 0.005}, 0.01, 0.01},
};

using Lap = std::function<void()>;  // comes before and after what is counted

void* allocate(Random& random, const Work& work) {
    auto* p = static_cast<char*>(std::malloc(work.least + random.below(work.most - work.least + 1)));
    *p = 1;
    return p;
}

void replace(const Work& work, std::vector<std::atomic<void*>>& all, unsigned thread, long own, const Lap& lap) {
    Random random(thread + 1);
    const bool exchanged = !std::strcmp(work.name, "exchanged");
    const std::size_t from = exchanged ? 0 : std::size_t(thread) * work.live;
    const std::size_t slots = exchanged ? all.size() : work.live;
    const auto step = [&] { std::free(all[from + random.below(slots)].exchange(allocate(random, work))); };
    for (long i = 0; i < own; ++i) step();
    lap();
    for (long i = 0; i < own; ++i) step();
    lap();
}

void burst(const Work& work, unsigned thread, long own, const Lap& lap) {
    Random random(thread + 1);
    std::vector<void*> objects(work.live);
    const auto round = [&] {
        for (void*& p : objects) p = allocate(random, work);
        for (std::size_t i = objects.size() - 1; i > 0; --i) std::swap(objects[i], objects[random.below(i + 1)]);
        for (void* p : objects) std::free(p);
    };
    for (int i = 0; i < 2; ++i) round();
    lap();
    for (long i = 0; i < own; i += work.live) round();
    lap();
}

}  // namespace

int main(int, char** argv) {
    testing_support::require_library();
    counted = reinterpret_cast<decltype(counted)>(dlsym(RTLD_DEFAULT, "numalloc_counted"));
    CHECK(counted != nullptr);
    const Work* work = works;
    while (std::strcmp(work->name, argv[1]) != 0) CHECK(++work != std::end(works));
    const auto threads = unsigned(std::atoi(argv[2]));
    const bool parfree = !std::strcmp(work->name, "parfree");
    const bool bursts = !std::strcmp(work->name, "bursts");
    // Of one thread.
    long own = work->pairs / long(threads);
    if (bursts) own = std::max(2L, own / long(work->live)) * long(work->live);

    std::vector<std::atomic<void*>> all(parfree  ? std::size_t(own) * threads
                                        : bursts ? 0
                                                 : std::size_t(threads) * work->live);
    if (parfree) {
        Random random(1);
        for (auto& p : all) p = allocate(random, *work);
        for (std::size_t i = all.size() - 1; i > 0; --i) all[i] = all[random.below(i + 1)].exchange(all[i]);
    }
    Counts laps[2];
    int lap = 0;
    std::barrier all_there(threads, [&]() noexcept { laps[lap++] = Counts::now(); });
    const Lap next = [&] { all_there.arrive_and_wait(); };
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            if (bursts) return burst(*work, t, own, next);
            if (!parfree) return replace(*work, all, t, own, next);
            next();
            for (std::size_t i = t * std::size_t(own); i < (t + 1) * std::size_t(own); ++i) std::free(all[i]);
            next();
        });
    for (std::thread& t : running) t.join();

    const Counts c = Counts::of_each(laps[0], laps[1], double(own) * threads);
    std::printf(
        "%-9s %3u threads, per malloc and free: shared locks %.4f (classes %.4f, pages %.4f), foreign tries %.4f, "
        "failed tries %.4f, "
        "walked under a lock %.4f, hand-overs %.4f, of which %.4f needed a lock, refills %.4f, common ring %.4f, "
        "sleeps %.5f\n",
        work->name, threads, c.locks(), c.of[4], c.of[6], c.of[foreign], c.of[failed], c.of[walked], c.of[hand_overs],
        c.of[locked_batches], c.of[refills], c.of[common_lists], c.of[sleeps]);
    std::fflush(stdout);
    if (std::getenv("NUMALLOC_TEST_SHOW") != nullptr) return 0;
    std::size_t row = 0;
    while (row + 1 < rows && threads > most_threads[row]) ++row;
    const double locks = work->locks[row];
    // How threads meet is up to the system, too: what fails five times in a row is ours.
    const char* const tried = std::getenv("NUMALLOC_TEST_TRIED");
    const int tries = tried == nullptr ? 1 : 1 + std::atoi(tried);
    if (tries < 5 && (c.locks() > locks || c.of[foreign] > work->foreign || c.of[walked] > work->walked)) {
        setenv("NUMALLOC_TEST_TRIED", std::to_string(tries).c_str(), 1);
        execv("/proc/self/exe", argv);
    }
    CHECK(c.locks() <= locks);
    CHECK(c.of[foreign] <= work->foreign);
    CHECK(c.of[walked] <= work->walked);
    return 0;
}
