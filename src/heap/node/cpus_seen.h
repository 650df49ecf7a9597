// How many CPUs the threads of a node were seen on, at some of their slow paths, since the start or the fork. Not the
// CPUs that the node has, because a cpuset or taskset may leave the process a few of them; but a limit of CPU time
// leaves it all of them, and threads that move count each CPU.
//
//   count == number of bits that are set, when no thread is in saw()
//
// Thread-safe and lock-free. Each CPU is written once; afterwards saw() only reads.
#pragma once

#include <atomic>

#include "base/bits.h"
#include "os/affinity.h"

namespace numalloc {

class CpusSeen {
public:
    // Negative numbers and those from os::max_cpus on count as no CPU.
    void saw(int cpu) {
        const auto n = static_cast<unsigned>(cpu);
        if (n >= os::max_cpus) return;
        std::atomic<std::uint64_t>& word = words_[n / 64];
        const std::uint64_t bit = std::uint64_t{1} << n % 64;
        if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
        if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) count_.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }
    // In the child of a fork, which may run on other CPUs.
    void forget() {
        for (auto& word : words_)
            if (word.load(std::memory_order_relaxed) != 0) word.store(0, std::memory_order_relaxed);
        count_.store(0, std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint32_t> count_{0};
    std::atomic<std::uint64_t> words_[os::max_cpus / 64] = {};
};

}  // namespace numalloc
