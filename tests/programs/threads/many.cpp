// 10,000 threads in turn and 2,000 at once leave nothing behind: the resident set, the number of
// mappings and the number of tasks are near what they were.
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <vector>

#include "check.h"

namespace {

long mappings() {
    FILE* file = std::fopen("/proc/self/maps", "r");
    CHECK(file != nullptr);
    long lines = 0;
    for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n';
    std::fclose(file);
    return lines;
}

void use(unsigned seed) {
    void* own[100];
    testing_support::Random random(seed);
    for (void*& p : own) {
        const std::size_t size = random.below(20) ? random.below(1000) : random.below(50000);
        p = malloc(size);
        CHECK(p != nullptr);
        std::memset(p, 1, size);
    }
    for (void* p : own) free(p);
}

void in_turn() {
    for (int i = 0; i < 10000; ++i) {
        pthread_t thread;
        CHECK(pthread_create(
                  &thread, nullptr,
                  [](void* n) -> void* {
                      use(static_cast<unsigned>(reinterpret_cast<std::size_t>(n)));
                      return nullptr;
                  },
                  reinterpret_cast<void*>(static_cast<std::size_t>(i))) == 0);
        if (i % 2) CHECK(pthread_detach(thread) == 0);
        else CHECK(pthread_join(thread, nullptr) == 0);
    }
}

pthread_barrier_t all_here;

// Gives the resident set while all of them live.
long at_once(int count) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
    CHECK(pthread_barrier_init(&all_here, nullptr, static_cast<unsigned>(count) + 1) == 0);
    std::vector<pthread_t> threads(static_cast<std::size_t>(count));
    std::size_t number = 0;
    for (pthread_t& thread : threads) {
        const int result = pthread_create(
            &thread, &attributes,
            [](void* n) -> void* {
                use(static_cast<unsigned>(reinterpret_cast<std::size_t>(n)));
                pthread_barrier_wait(&all_here);
                pthread_barrier_wait(&all_here);
                return nullptr;
            },
            reinterpret_cast<void*>(++number));
        if (result != 0) {
            std::fprintf(stderr, "thread %zu of %d: %s\n", number, count, std::strerror(result));
            _exit(result == EAGAIN ? 77 : 1);
        }
    }
    pthread_barrier_wait(&all_here);
    const long resident = testing_support::resident_kib();
    pthread_barrier_wait(&all_here);
    for (pthread_t thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
    pthread_barrier_destroy(&all_here);
    pthread_attr_destroy(&attributes);
    return resident;
}

// Time for detached threads to be gone and for free memory to rest as long as it may (purge_delay
// is a second), with a little allocation meanwhile, as a program would do.
void settle() {
    for (int i = 0; i < 30; ++i) {
        timespec pause{0, 100000000};
        nanosleep(&pause, nullptr);
        use(3);
    }
}

}  // namespace

int main() {
    testing_support::require_library();
    // What any thread leaves in glibc itself (cached stacks) is part of the start.
    use(1);
    at_once(50);
    settle();
    const long start = testing_support::resident_kib(), start_mappings = mappings();
    in_turn();
    settle();
    const long after_turns = testing_support::resident_kib(), turn_mappings = mappings();
    const long during = at_once(2000);
    settle();
    const long after_all = testing_support::resident_kib(), all_mappings = mappings();
    std::printf(
        "resident: %ld KiB at the start, %ld after 10,000 threads in turn, %ld with 2,000 alive, %ld after them\n",
        start, after_turns, during, after_all);
    std::printf("mappings: %ld, %ld, %ld\n", start_mappings, turn_mappings, all_mappings);
    std::fflush(stdout);
    // What rests may be 4 MiB and a quarter of what is in use. One page of each thread would be 40 MiB.
    CHECK(after_turns - start < 5 * 1024);
    // glibc keeps 40 MiB of stacks (320 of them), each with a page at least that was written: longer pages are more.
    CHECK(after_all - start < 16 * 1024 + 320 * (sysconf(_SC_PAGESIZE) - 4096) / 1024);
    CHECK(turn_mappings - start_mappings < 100);
    // A stack is two mappings.
    CHECK(all_mappings - start_mappings < 1000);
}
