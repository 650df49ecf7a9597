// Counts system calls that the kernel refused, and keeps the last error, for the statistics. To the caller a refusal is
// only a result.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

struct Refusals {
    std::atomic<std::uint64_t> times{0};
    std::atomic<int> error{0};

    // `e` is a positive errno, or 0 for success. Returns `e`.
    int note(int e) {
        if (e == 0) return 0;
        times.fetch_add(1, std::memory_order_relaxed);
        error.store(e, std::memory_order_relaxed);
        return e;
    }
};

#define NUMALLOC_REFUSAL(name) extern constinit Refusals refused_##name;
#include "os/refusals.def"
#undef NUMALLOC_REFUSAL

}  // namespace numalloc::os
