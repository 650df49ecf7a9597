#include "os/huge_page_cost.h"

#include <cstring>

#include "base/atomic.h"
#include "os/clock.h"
#include "os/memory.h"

namespace numalloc::os {

namespace {

// Clearing takes .1 to .3 ms, the host's pages 4 to 30.
constexpr std::uint64_t dear_milliseconds = 1;
// In emulation everything takes long: so many times what the program itself takes to clear as much.
constexpr std::uint64_t dear_times = 8;
constexpr Bytes cleared = 32 * KiB;

}  // namespace

bool touch_is_dear(void* huge_page) {
    if (ticks_are_forbidden()) return false;
    const std::uint64_t begin = ticks();
    store_relaxed(*static_cast<std::uint64_t*>(huge_page), std::uint64_t{0});
    const std::uint64_t given = ticks();
    if (given - begin <= dear_milliseconds * ticks_a_millisecond()) return false;
    std::memset(huge_page, 0, cleared);
    const std::uint64_t clearing = (ticks() - given) * (os::huge_page / cleared);
    return given - begin > dear_times * clearing;
}

}  // namespace numalloc::os
