// Whether memory that somebody had was used, told without a system call.
#pragma once

#include <cstdint>
#include <cstring>

#include "heap/space/policy.h"

namespace numalloc {

// Whether at least one in policy::used_part of the memory holds something other than zeros, by samples at places that no regular
// layout of data hits or misses. The caller owns the memory. A page that nobody has touched is mapped to the kernel's page of
// zeros for it.
inline bool mostly_written(const char* p, Bytes bytes) {
    constexpr Bytes sample = 4 * KiB;
    constexpr Bytes samples = 32;
    const Bytes part = bytes / samples;
    if (part < sample) return true;
    Bytes written = 0;
    for (Bytes i = 0; i < samples; ++i) {
        const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
        const char* const at = p + i * part + align_down((mixed >> 32) % (part - sample + 1), sample);
        std::uint64_t first;
        std::memcpy(&first, at, sizeof first);
        written += first != 0 || std::memcmp(at, at + sizeof first, sample - sizeof first) != 0 ? 1 : 0;
    }
    return written * policy::used_part >= samples;
}

}  // namespace numalloc
