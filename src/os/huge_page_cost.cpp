#include "os/huge_page_cost.h"

#include <cstring>

#include "base/atomic.h"
#include "os/clock.h"
#include "os/memory.h"

namespace numalloc::os {

namespace {

// Between the time to clear a huge page (.1 to .3 ms) and the time in which a host supplies one (4 to 30 ms). The clock
// advances by 1 to 10 ms at a time. Where that is 10 ms, any tick counts, also one that came by chance: so four in a
// row decide (heap/pages/huge_page_touches.h).
constexpr std::uint32_t dear_from = 2;  // milliseconds
// In emulation everything is slow: an expensive touch also takes more than 8 times as long as clearing as many bytes.
constexpr std::uint32_t dear_times = 8;
constexpr Bytes most_cleared = 32 * KiB;

}  // namespace

bool touch_is_dear(void* huge_page, Bytes own) {
    const std::uint32_t begin = milliseconds();
    store_relaxed(*static_cast<std::uint64_t*>(huge_page), std::uint64_t{0});
    const std::uint32_t given = milliseconds();
    if (given - begin < dear_from) return false;
    const Bytes cleared = min_of(own, most_cleared);
    for (Bytes done = 0; done < os::huge_page; done += cleared) {
        std::memset(huge_page, 0, cleared);
        __asm__ volatile("" : : "r"(huge_page) : "memory");
    }
    return given - begin > dear_times * (milliseconds() - given);
}

}  // namespace numalloc::os
