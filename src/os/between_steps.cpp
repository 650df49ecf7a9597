#include "os/between_steps.h"

#if defined(NUMALLOC_CHECKS)

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "os/filter.h"

namespace numalloc::os {

namespace {
std::atomic<std::uint32_t> steps{0};
}

// Yields at one step in eight, at random. By libc's function: tests allow no such call of the library's own code.
void between_steps() {
    const std::uint32_t mixed = steps.fetch_add(1, std::memory_order_relaxed) * 2654435761U;
    if (mixed >> 29 == 0 && !filtered()) sched_yield();
}

}  // namespace numalloc::os

#endif
