#include "os/clock.h"

#include <ctime>

namespace numalloc::os {

std::uint32_t milliseconds() {
    timespec t{};
    // Cannot fail for this clock, hence leaves errno alone.
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(t.tv_sec) * 1000 +
                                      static_cast<std::uint64_t>(t.tv_nsec) / 1000000);
}

}  // namespace numalloc::os
