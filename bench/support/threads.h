#pragma once

#include <pthread.h>

#include <ctime>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/scope_markers.h"

namespace bench {

/// Seconds of a clock that only goes forward.
inline double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// A barrier for a fixed number of threads.
class Barrier {
public:
    explicit Barrier(unsigned threads) { pthread_barrier_init(&barrier_, nullptr, threads); }
    ~Barrier() { pthread_barrier_destroy(&barrier_); }
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;
    void wait() { pthread_barrier_wait(&barrier_); }

private:
    pthread_barrier_t barrier_;
};

/// A started thread; fails the program when there can be no more of them.
template <class Argument>
pthread_t start_thread(void* (*body)(void*), Argument* argument) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, body, argument) != 0) fail("cannot start another thread");
    return thread;
}

/// What `research scope --window markers` counts begins and ends with these; elsewhere they do nothing.
inline void mark_start() {
#ifdef __x86_64__
    SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
#endif
}
inline void mark_stop() {
#ifdef __x86_64__
    SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
#endif
}

/// Runs prepare(index), and then body(index), in `count` threads that set out together with the body. Returns the
/// seconds until the last has been joined: what a thread's end costs belongs to the time, what its start and
/// prepare() cost does not.
template <class Prepare, class Body>
double run_threads(unsigned count, const Prepare& prepare, Body&& body) {
    struct Task {
        const Prepare* prepare;
        Body* body;
        Barrier* gate;
        unsigned index;
    };
    Barrier gate(count + 1);
    std::vector<Task> tasks(count);
    std::vector<pthread_t> threads(count);
    for (unsigned i = 0; i < count; ++i) {
        tasks[i] = {&prepare, &body, &gate, i};
        threads[i] = start_thread(
            [](void* argument) -> void* {
                const Task task = *static_cast<Task*>(argument);
                (*task.prepare)(task.index);
                task.gate->wait();  // all are there
                task.gate->wait();  // the clock runs
                (*task.body)(task.index);
                return nullptr;
            },
            &tasks[i]);
    }
    gate.wait();
    mark_start();
    const double start = now();
    gate.wait();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    const double seconds = now() - start;
    mark_stop();
    return seconds;
}

/// The same with nothing to prepare.
template <class Body>
double run_threads(unsigned count, Body&& body) {
    return run_threads(count, [](unsigned) {}, std::forward<Body>(body));
}

/// The part of `total` that thread `index` of `count` does; the parts differ by one at most.
inline std::uint64_t share(std::uint64_t total, unsigned index, unsigned count) {
    return total / count + (index < total % count ? 1 : 0);
}

}  // namespace bench
