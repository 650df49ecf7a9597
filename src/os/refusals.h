// What the kernel refused: a quiet result for who asked, kept for the statistics. How often, and why the last time.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

struct Refusals {
    std::atomic<std::uint64_t> times{0};
    std::atomic<int> error{0};

    // `error` as the kernel has it, positive; 0 is none. Returns it.
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
