// A fixed team of threads, main among them as OpenMP has it, which works in locksteps.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace jarena {

[[noreturn]] inline void die(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(2);
}

inline double seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline int node_here() {
    unsigned cpu = 0;
    unsigned node = 0;
    return getcpu(&cpu, &node) == 0 ? static_cast<int>(node) : 0;
}

class Team {
public:
    // pinned: thread t stays on CPU t, as with OMP_PROC_BIND; otherwise whoever binds, binds.
    Team(int threads, bool pinned) : node_(static_cast<std::size_t>(threads)), threads_(threads), pinned_(pinned) {
        pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(threads));
    }
    ~Team() { pthread_barrier_destroy(&barrier_); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return threads_; }
    // The node that a thread was on when it last noted it.
    int node_of(int thread) const { return node_[static_cast<std::size_t>(thread)]; }
    void note_node(int thread) { node_[static_cast<std::size_t>(thread)] = node_here(); }
    void wait() { pthread_barrier_wait(&barrier_); }

    // body(number of the thread) on every thread.
    template <class Body>
    void run(Body& body) {
        struct Start {
            Team* team;
            Body* body;
            int number;
        };
        std::vector<Start> starts;
        std::vector<pthread_t> threads(static_cast<std::size_t>(threads_));
        for (int t = 0; t < threads_; ++t) starts.push_back({this, &body, t});
        const auto enter = [](void* argument) -> void* {
            const Start& s = *static_cast<Start*>(argument);
            if (s.team->pinned_) pin(s.number % static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
            (*s.body)(s.number);
            return nullptr;
        };
        for (int t = 1; t < threads_; ++t)
            if (pthread_create(&threads[static_cast<std::size_t>(t)], nullptr, enter,
                               &starts[static_cast<std::size_t>(t)]) != 0)
                die("cannot start a thread");
        enter(&starts[0]);
        for (int t = 1; t < threads_; ++t) pthread_join(threads[static_cast<std::size_t>(t)], nullptr);
    }

private:
    static void pin(int cpu) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<std::size_t>(cpu), &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0) die("cannot run on that CPU");
    }

    pthread_barrier_t barrier_;
    std::vector<int> node_;
    int threads_;
    [[maybe_unused]] bool pinned_;  // a program without threads has no use for it
};

}  // namespace jarena
