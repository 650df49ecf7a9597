// What the threads of a node may hold together. Each may hold a little; what one that works much needs beyond it
// comes from one pool, and goes back there when it holds less, when others were refused, or when it ends.
//
// A thread that sleeps keeps what it holds: nobody may take it from it. Another thread could only where it is certain
// that it is outside of malloc, and nothing shows that. The kernel says that it waits in a system call; but a signal's
// handler may wait in one, too, and the signal may have come in the middle of a fast path (so do those by which Boehm's
// and Mono's collectors stop threads). Hence the bound is on what threads hold while they run.
//
// The pool is 2 MiB for each CPU: as many threads run, and what these hold, they use. Of more threads most wait, and
// in each bag of which one of them holds an object the others of the bag are of no use to anybody: so the pool
// becomes smaller with their number, down to a quarter.
#pragma once

#include "base/bits.h"

namespace numalloc {

class BudgetPool {
public:
    // Each thread's own, whatever the others have.
    static constexpr std::uint32_t least = 96 * KiB;
    // And of a thread that has done little yet.
    static constexpr std::uint32_t first = least / 4;

    static constexpr Bytes of_cpu = 2 * MiB;
    static constexpr unsigned fewest_cpus = 16;  // a machine with fewer has as large a pool
    static constexpr unsigned smallest_part = 4;

    void start(unsigned cpus) {
        cpus_ = max_of(cpus, fewest_cpus);
        restart(0);
    }
    // Where nobody said how many there are: a thread runs on this one.
    void see_cpu(int cpu) {
        const unsigned cpus = static_cast<unsigned>(cpu + 1);
        if (cpus > __atomic_load_n(&cpus_, __ATOMIC_RELAXED)) __atomic_store_n(&cpus_, cpus, __ATOMIC_RELAXED);
    }
    // How many threads the node has now.
    void set_threads(std::uint32_t threads) {
        const std::int64_t all = size_for(threads);
        const std::int64_t before = __atomic_exchange_n(&all_, all, __ATOMIC_RELAXED);
        if (all != before) __atomic_fetch_add(&left_, all - before, __ATOMIC_RELAXED);
    }

    // As much as is there, up to `want`.
    std::uint32_t take(std::uint32_t want) {
        std::int64_t left = __atomic_load_n(&left_, __ATOMIC_RELAXED);
        for (;;) {
            if (left <= 0) return 0;
            const auto taken = static_cast<std::uint32_t>(min_of<std::int64_t>(want, left));
            if (__atomic_compare_exchange_n(&left_, &left, left - taken, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return taken;
        }
    }
    void give(std::uint32_t bytes) {
        if (bytes != 0) __atomic_fetch_add(&left_, std::int64_t{bytes}, __ATOMIC_RELAXED);
    }

    // A thread with this budget found nothing.
    void ask(std::uint32_t budget) { __atomic_store_n(&asked_, budget, __ATOMIC_RELAXED); }
    // Whether one did that has less: once for each that asks.
    bool asked_by_less_than(std::uint32_t budget) {
        const std::uint32_t asked = __atomic_load_n(&asked_, __ATOMIC_RELAXED);
        if (asked == 0 || asked >= budget) return false;
        ask(0);
        return true;
    }

    // In the child of a fork: so much of it belongs to threads that it has.
    void restart(std::uint32_t lent) {
        ask(0);
        all_ = size_for(1);
        __atomic_store_n(&left_, all_ - lent, __ATOMIC_RELAXED);
    }

private:
    std::int64_t size_for(std::uint32_t threads) const {
        const unsigned cpus = __atomic_load_n(&cpus_, __ATOMIC_RELAXED);
        const Bytes all = cpus * of_cpu;
        const Bytes size = threads <= cpus ? all : max_of(all / smallest_part, all * cpus / threads);
        return static_cast<std::int64_t>(size);
    }

    alignas(64) std::int64_t left_ = 0;  // less than nothing: it has become smaller than what is lent
    std::int64_t all_ = 0;
    std::uint32_t asked_ = 0;
    unsigned cpus_ = fewest_cpus;
};

}  // namespace numalloc
