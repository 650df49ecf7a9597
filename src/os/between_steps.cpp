#include "os/between_steps.h"

#if defined(NUMALLOC_CHECKS)

#include <atomic>
#include <cstdint>

#include "os/syscall.h"

namespace numalloc::os {

namespace {
std::atomic<std::uint32_t> steps{0};
}

// Yields at one step in eight, at random.
void between_steps() {
    const std::uint32_t mixed = steps.fetch_add(1, std::memory_order_relaxed) * 2654435761U;
    if (mixed >> 29 == 0) call(SYS_sched_yield);
}

}  // namespace numalloc::os

#endif
