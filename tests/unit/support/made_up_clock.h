// A clock that stands still until the test advances it. In programs that list support/made_up_clock.cpp as a source,
// the linker replaces os::milliseconds() by it (CMakeLists.txt): neither load nor a slow machine changes what such a
// test sees.
#pragma once

#include <cstdint>

namespace numalloc::testing {

// Where the clock stands when the program starts.
constexpr std::uint32_t clock_start = 1'000'000;
// A start so close to the 32-bit wrap that `before` milliseconds later the clock shows zero.
constexpr std::uint32_t before_wrap(std::uint32_t before) { return 0U - before; }

void set_clock(std::uint32_t milliseconds);
void advance_clock(std::uint32_t milliseconds);

}  // namespace numalloc::testing
