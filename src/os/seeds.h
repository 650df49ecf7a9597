// Numbers by which a process draws what nobody shall guess. Thread-safe; errno is kept.
#pragma once

#include <cstdint>

namespace numalloc::os {

// What a number is for: none tells anything of another, nor of what libc draws from the same bytes.
enum class SeedFor : std::uint64_t { layout = 1, profile, freed_key, hardened_key, hardened_factor, guarded };

// From the 16 bytes that the kernel gives each program as it begins, by a keyed one-way function: who learns the number learns
// neither the bytes nor where they are.
std::uint64_t secret_seed(SeedFor what);

// The same, but always one number where the system was told not to lay processes out at random (setarch -R, debuggers).
std::uint64_t layout_seed(SeedFor what);

}  // namespace numalloc::os
