// Random seeds of the process. Thread-safe; keeps errno.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Each use has its own seed. A seed reveals no other seed, and no value that libc derives from the same bytes.
enum class SeedFor : std::uint64_t { layout = 1, profile, freed_key, hardened_key, hardened_factor, guarded };

// SipHash of `what`, keyed by the 16 random bytes that the kernel passes to each program (AT_RANDOM). Reveals neither
// the bytes nor their address, which lies on the stack.
std::uint64_t secret_seed(SeedFor what);

// The same, but a constant if address space randomisation is off for this process (setarch -R, debuggers).
std::uint64_t layout_seed(SeedFor what);

}  // namespace numalloc::os
