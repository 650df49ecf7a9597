// A hundred threads use every size and free all of it, then wait: nobody can take from them what they hold, so that
// they must hold little.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

namespace {

constexpr int threads = 100;
constexpr int most_objects = 6000;
pthread_barrier_t barrier;
void* objects[threads][most_objects];

void* work(void* number) {
    void** const held = objects[reinterpret_cast<std::size_t>(number)];
    testing_support::Random random(static_cast<unsigned>(reinterpret_cast<std::size_t>(number)));
    for (unsigned round = 0; round < 20; ++round) {
        const unsigned largest = 1U << (5 + round % 11);
        const unsigned count = most_objects / (1 + largest / 2048);
        for (unsigned i = 0; i < count; ++i) {
            const std::size_t size = 1 + random.below(largest);
            held[i] = malloc(size);
            CHECK(held[i] != nullptr);
            std::memset(held[i], 1, size);
        }
        for (unsigned i = 0; i < count; ++i) free(held[i]);
    }
    pthread_barrier_wait(&barrier);
    for (;;) pause();
}

}  // namespace

int main() {
    testing_support::require_library();
    pthread_barrier_init(&barrier, nullptr, threads + 1);
    pthread_attr_t small_stack;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 128 * 1024);
    for (std::size_t i = 0; i < threads; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small_stack, work, reinterpret_cast<void*>(i)) == 0);
    }
    pthread_barrier_wait(&barrier);
    const long waiting = testing_support::resident_kib();
    malloc_trim(0);
    const long trimmed = testing_support::resident_kib();
    std::printf("%d threads wait: resident %ld KiB, %ld after malloc_trim\n", threads, waiting, trimmed);
    std::fflush(stdout);
    // Some 8 MiB are stacks and the array.
    CHECK(waiting <= 100 * 1024);
    CHECK(trimmed <= 56 * 1024);
}
