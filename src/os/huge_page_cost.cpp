#include "os/huge_page_cost.h"

#include <cstring>

#include "base/atomic.h"
#include "os/clock.h"
#include "os/memory.h"

namespace numalloc::os {

namespace {

// Clearing takes .1 to .3 ms, the host's pages 4 to 30.
constexpr std::uint64_t dear_from = 1'000'000;  // nanoseconds
// In emulation everything takes long: so many times what the program itself takes to clear as much.
constexpr std::uint64_t dear_times = 8;
constexpr Bytes cleared = 32 * KiB;

}  // namespace

bool touch_is_dear(void* huge_page) {
    const std::uint64_t begin = thread_nanoseconds();
    store_relaxed(*static_cast<std::uint64_t*>(huge_page), std::uint64_t{0});
    const std::uint64_t given = thread_nanoseconds();
    if (given - begin <= dear_from) return false;
    std::memset(huge_page, 0, cleared);
    const std::uint64_t clearing = (thread_nanoseconds() - given) * (os::huge_page / cleared);
    return given - begin > dear_times * clearing;
}

}  // namespace numalloc::os
