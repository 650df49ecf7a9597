#include "support/made_up_clock.h"

#include <atomic>

namespace {

constinit std::atomic<std::uint32_t> now{numalloc::testing::clock_start};

}  // namespace

// The linker's name for what the sources call os::milliseconds().
extern "C" std::uint32_t __wrap__ZN8numalloc2os12millisecondsEv() { return now.load(std::memory_order_relaxed); }

namespace numalloc::testing {

void set_clock(std::uint32_t milliseconds) { now.store(milliseconds, std::memory_order_relaxed); }
void advance_clock(std::uint32_t milliseconds) { now.fetch_add(milliseconds, std::memory_order_relaxed); }

}  // namespace numalloc::testing
