// What the caller asked of a thread is what it gets: stack size and address, guard, detached state,
// scheduling, affinity, signal mask, its argument and its result. Run with and without binding.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <threads.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <initializer_list>

#include "check.h"

namespace {

struct Attributes {
    pthread_attr_t value;
    Attributes() { CHECK(pthread_attr_init(&value) == 0); }
    ~Attributes() { pthread_attr_destroy(&value); }
    pthread_attr_t* operator&() { return &value; }
};

// What a running thread says of itself.
struct Seen {
    std::size_t stack_size, guard_size;
    char* stack;
    int detached, policy, priority, cpus;
    sigset_t mask;
    void* here;
};

void* look(void* result) {
    auto* seen = static_cast<Seen*>(result);
    pthread_attr_t own;
    CHECK(pthread_getattr_np(pthread_self(), &own) == 0);
    void* stack;
    CHECK(pthread_attr_getstack(&own, &stack, &seen->stack_size) == 0);
    seen->stack = static_cast<char*>(stack);
    CHECK(pthread_attr_getguardsize(&own, &seen->guard_size) == 0);
    CHECK(pthread_attr_getdetachstate(&own, &seen->detached) == 0);
    pthread_attr_destroy(&own);
    sched_param parameter;
    CHECK(pthread_getschedparam(pthread_self(), &seen->policy, &parameter) == 0);
    seen->priority = parameter.sched_priority;
    cpu_set_t set;
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    seen->cpus = CPU_COUNT(&set);
    CHECK(pthread_sigmask(SIG_SETMASK, nullptr, &seen->mask) == 0);
    seen->here = &own;
    free(malloc(1000));
    return result;
}

Seen run(pthread_attr_t* attributes) {
    Seen seen{};
    pthread_t thread;
    CHECK(pthread_create(&thread, attributes, look, &seen) == 0);
    void* result = nullptr;
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == &seen);
    return seen;
}

void stack_sizes() {
    const Seen usual = run(nullptr);
    // The least is 16 KiB on x86-64, 128 KiB on aarch64.
    for (std::size_t size :
         {std::max<std::size_t>(65536, PTHREAD_STACK_MIN), std::size_t{1} << 20, std::size_t{64} << 20}) {
        Attributes a;
        CHECK(pthread_attr_setstacksize(&a, size) == 0);
        CHECK(run(&a).stack_size == size);
    }
    CHECK(run(nullptr).stack_size == usual.stack_size);
    Attributes a;
    CHECK(pthread_attr_setguardsize(&a, 65536) == 0);
    CHECK(run(&a).guard_size == 65536);
}

void own_stack() {
    const std::size_t size = 256 * 1024;
    auto* stack = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(stack != MAP_FAILED);
    Attributes a;
    CHECK(pthread_attr_setstack(&a, stack, size) == 0);
    for (int i = 0; i < 20; ++i) {
        const Seen seen = run(&a);
        CHECK(seen.stack == stack && seen.stack_size == size);
        CHECK(seen.here > stack && seen.here < stack + size);
    }
    // And one on the heap, as some programs do.
    void* block = aligned_alloc(4096, size);
    CHECK(pthread_attr_setstack(&a, block, size) == 0);
    CHECK(run(&a).stack == block);
    free(block);
    munmap(stack, size);
}

sem_t posted;

void detached() {
    Attributes a;
    CHECK(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED) == 0);
    CHECK(sem_init(&posted, 0, 0) == 0);
    for (int i = 0; i < 200; ++i) {
        static Seen seen;
        pthread_t thread;
        CHECK(pthread_create(
                  &thread, &a,
                  [](void*) -> void* {
                      look(&seen);
                      sem_post(&posted);
                      return nullptr;
                  },
                  nullptr) == 0);
        while (sem_wait(&posted) != 0) CHECK(errno == EINTR);
        CHECK(seen.detached == PTHREAD_CREATE_DETACHED);
    }
    // Detached afterwards, by itself or by its creator.
    for (int i = 0; i < 200; ++i) {
        pthread_t thread;
        CHECK(pthread_create(
                  &thread, nullptr,
                  [](void*) -> void* {
                      free(malloc(500));
                      sem_post(&posted);
                      return malloc(10);
                  },
                  nullptr) == 0);
        CHECK(pthread_detach(thread) == 0);
        while (sem_wait(&posted) != 0) CHECK(errno == EINTR);
    }
    int state = -1;
    CHECK(pthread_attr_getdetachstate(&a, &state) == 0 && state == PTHREAD_CREATE_DETACHED);
}

void scheduling() {
    CHECK(run(nullptr).policy == SCHED_OTHER);
    Attributes a;
    CHECK(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED) == 0);
    CHECK(pthread_attr_setschedpolicy(&a, SCHED_FIFO) == 0);
    sched_param parameter{};
    parameter.sched_priority = 3;
    CHECK(pthread_attr_setschedparam(&a, &parameter) == 0);
    Seen seen{};
    pthread_t thread;
    const int result = pthread_create(&thread, &a, look, &seen);
    // Without the right to it the caller must hear EPERM, as from glibc.
    CHECK(result == 0 || result == EPERM);
    if (result == 0) {
        CHECK(pthread_join(thread, nullptr) == 0);
        CHECK(seen.policy == SCHED_FIFO && seen.priority == 3);
    }
}

bool has_usr2_blocked(pthread_attr_t* attributes) {
    const Seen seen = run(attributes);
    return sigismember(&seen.mask, SIGUSR2) == 1;
}

void affinity_and_mask() {
    cpu_set_t all, first;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(run(nullptr).cpus == CPU_COUNT(&all));
    CPU_ZERO(&first);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &first);
            break;
        }
    Attributes a;
    CHECK(pthread_attr_setaffinity_np(&a, sizeof first, &first) == 0);
    CHECK(run(&a).cpus == 1);
    cpu_set_t kept;
    CHECK(pthread_attr_getaffinity_np(&a, sizeof kept, &kept) == 0);
    CHECK(CPU_EQUAL(&kept, &first));

    sigset_t block, old;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &block, &old) == 0);
    CHECK(has_usr2_blocked(nullptr));
    CHECK(pthread_sigmask(SIG_SETMASK, &old, nullptr) == 0);
    CHECK(!has_usr2_blocked(nullptr));
    Attributes masked;
    CHECK(pthread_attr_setsigmask_np(&masked, &block) == 0);
    CHECK(has_usr2_blocked(&masked));
}

// A thread that cannot be had is an error code, and nothing is lost by it.
void refused() {
    Attributes a;
    CHECK(pthread_attr_setstacksize(&a, std::size_t{200} << 40) == 0);
    const std::size_t before = testing_support::bytes_in_use();
    for (int i = 0; i < 2000; ++i) {
        Seen seen{};
        pthread_t thread;
        CHECK(pthread_create(&thread, &a, look, &seen) == EAGAIN);
    }
    CHECK(testing_support::bytes_in_use() < before + (2 << 20));
    run(nullptr);
}

void c11() {
    for (int i = 0; i < 50; ++i) {
        thrd_t thread;
        int value = i;
        CHECK(thrd_create(
                  &thread,
                  [](void* p) -> int {
                      free(malloc(3000));
                      int given = *static_cast<int*>(p);
                      if (given % 2) thrd_exit(given + 1);
                      return given + 1;
                  },
                  &value) == thrd_success);
        int result = 0;
        CHECK(thrd_join(thread, &result) == thrd_success);
        CHECK(result == i + 1);
    }
    // Negative results and the whole range of int come back.
    thrd_t thread;
    CHECK(thrd_create(&thread, [](void*) -> int { return INT32_MIN; }, nullptr) == thrd_success);
    int result = 0;
    CHECK(thrd_join(thread, &result) == thrd_success && result == INT32_MIN);
}

}  // namespace

int main() {
    testing_support::require_library();
    stack_sizes();
    own_stack();
    detached();
    scheduling();
    affinity_and_mask();
    refused();
    c11();
    std::puts("attributes are kept");
}
