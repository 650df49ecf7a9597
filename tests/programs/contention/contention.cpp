// How often threads of one node meet: the build that counts says how many shared locks, tries, sleeps and
// objects walked under a lock a malloc and its free cost, in steady state. Counts, not times: the same on any machine.
//
//   contention WORK THREADS      prints one line
//   WORK  own, exchanged         16 B to 1 KiB, random replacement; freed by the thread itself, or by any
//         medium, large          4 to 32 KiB, 40 to 500 KiB, random replacement
//         bursts                 4 MiB of 256 B, and all of it freed, in a random order
//         parfree                one thread builds, others free at random: counted are the frees
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "check.h"

using testing_support::Random;

namespace {

unsigned long long (*counted)(const char*);

constexpr const char* shared_locks[] = {"locks_initialise", "locks_threads", "locks_thread_pool", "locks_bound_heap",
                                        "locks_size_class", "locks_extents", "locks_metadata"};

struct Counts {
    double locks = 0, failed, foreign, walked, sleeps, hand_overs, sorted, refills, size_class, extents;
    static Counts now() {
        Counts c;
        for (const char* name : shared_locks) c.locks += double(counted(name));
        c.size_class = double(counted("locks_size_class"));
        c.extents = double(counted("locks_extents"));
        c.failed = double(counted("failed_try_locks"));
        c.foreign = double(counted("foreign_try_locks"));
        c.walked = double(counted("walked"));
        c.sleeps = double(counted("futex_sleeps"));
        c.hand_overs = double(counted("hand_overs"));
        c.sorted = double(counted("locked_sorts"));
        c.refills = double(counted("refills"));
        return c;
    }
};

struct Work {
    const char* name;
    unsigned least, most;  // bytes of an object
    unsigned live;         // objects of a thread
    long pairs;            // of all threads together
};

constexpr Work works[] = {
    {"own", 16, 1024, 1000, 4'000'000},
    {"exchanged", 16, 1024, 1000, 4'000'000},
    {"medium", 4096, 32768, 300, 1'000'000},
    {"large", 40'000, 500'000, 20, 200'000},
    {"bursts", 256, 256, 16'384, 4'000'000},
    {"parfree", 64, 64, 0, 3'000'000},
};

void* allocate(Random& random, const Work& work) {
    auto* p = static_cast<char*>(std::malloc(work.least + random.below(work.most - work.least + 1)));
    *p = 1;
    return p;
}

// One thread's share of the work: `lap` comes before and after what is counted.
template <class Lap>
void replace(const Work& work, std::vector<std::atomic<void*>>& all, unsigned thread, unsigned threads, Lap lap) {
    Random random(thread + 1);
    const bool exchanged = !std::strcmp(work.name, "exchanged");
    const std::size_t from = exchanged ? 0 : std::size_t(thread) * work.live;
    const std::size_t slots = exchanged ? all.size() : work.live;
    const long own = work.pairs / long(threads);
    const auto step = [&] { std::free(all[from + random.below(slots)].exchange(allocate(random, work))); };
    for (long i = 0; i < own; ++i) step();
    lap();
    for (long i = 0; i < own; ++i) step();
    lap();
}

template <class Lap>
void burst(const Work& work, unsigned thread, unsigned threads, Lap lap) {
    Random random(thread + 1);
    std::vector<void*> objects(work.live);
    const auto round = [&] {
        for (void*& p : objects) p = allocate(random, work);
        for (std::size_t i = objects.size() - 1; i > 0; --i) std::swap(objects[i], objects[random.below(i + 1)]);
        for (void* p : objects) std::free(p);
    };
    const long rounds = std::max(2L, work.pairs / long(threads) / long(objects.size()));
    for (long i = 0; i < 2; ++i) round();
    lap();
    for (long i = 0; i < rounds; ++i) round();
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

    std::vector<std::atomic<void*>> all(parfree ? std::size_t(work->pairs) : bursts ? 0 : std::size_t(threads) * work->live);
    if (parfree) {
        Random random(1);
        for (auto& p : all) p = allocate(random, *work);
        for (std::size_t i = all.size() - 1; i > 0; --i) all[i] = all[random.below(i + 1)].exchange(all[i]);
    }
    Counts before, after;
    int laps = 0;
    std::barrier lap(threads, [&]() noexcept { (laps++ == 0 ? before : after) = Counts::now(); });
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            const auto next = [&] { lap.arrive_and_wait(); };
            if (bursts) return burst(*work, t, threads, next);
            if (!parfree) return replace(*work, all, t, threads, next);
            next();
            const std::size_t part = all.size() / threads;
            for (std::size_t i = t * part; i < (t + 1) * part; ++i) std::free(all[i]);
            next();
        });
    for (std::thread& t : running) t.join();

    const double pairs = bursts ? double(std::max(2L, work->pairs / long(threads) / long(work->live)) * long(work->live) * long(threads)) : double(work->pairs);
    const double locks = (after.locks - before.locks) / pairs;
    const double foreign = (after.foreign - before.foreign) / pairs;
    const double walked = (after.walked - before.walked) / pairs;
    const double sorted = (after.sorted - before.sorted) / std::max(1.0, after.hand_overs - before.hand_overs);
    std::printf("%-10s %3u threads: shared locks %.4f (classes %.4f, pages %.4f), foreign tries %.4f, failed tries %.4f, walked under a lock %.4f, "
                "hand-overs %.4f, sorted under a lock %.3f of them, refills %.4f, sleeps %.5f\n",
                work->name, threads, locks, (after.size_class - before.size_class) / pairs, (after.extents - before.extents) / pairs, foreign,
                (after.failed - before.failed) / pairs, walked, (after.hand_overs - before.hand_overs) / pairs, sorted,
                (after.refills - before.refills) / pairs, (after.sleeps - before.sleeps) / pairs);
    std::fflush(stdout);
    return 0;
}
