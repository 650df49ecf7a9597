// Whether memory was written to, found out without a system call.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"

namespace numalloc {

namespace policy::written {

// Memory counts as used if at least half of it is not zero. Below half it is cheaper to discard it, since the program
// will probably leave it unused again and take few faults. A growing block is copied to a place that was used.
constexpr Bytes used_part = 2;

}  // namespace policy::written

// Whether all bytes are zero; false if there are less than 8. Stops at the first one that is not.
inline bool is_zero(const char* p, Bytes bytes) {
    std::uint64_t first;
    if (bytes < sizeof first) return false;
    std::memcpy(&first, p, sizeof first);
    return first == 0 && std::memcmp(p, p + sizeof first, bytes - sizeof first) == 0;
}

// The offset of a sample in the i-th of equal parts of memory: pseudo-random, so that data at regular distances is
// neither always hit nor always missed.
constexpr Bytes written_sample = 4 * KiB;
constexpr Bytes sample_in(std::uint64_t i, Bytes part) {
    const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
    return i * part + align_down((mixed >> 32) % (part - written_sample + 1), written_sample);
}

// How many of written_samples pieces of 4 KiB hold a byte that is not zero. Reads one piece in each 1/32 of the memory.
// The caller owns the memory, at least 128 KiB. Reading memory that nobody has touched maps the kernel's zero page.
constexpr unsigned written_samples = 32;
inline unsigned count_written(const char* p, Bytes bytes) {
    NUMALLOC_ASSERT(bytes >= written_samples * written_sample);
    unsigned written = 0;
    for (std::uint64_t i = 0; i < written_samples; ++i)
        written += is_zero(p + sample_in(i, bytes / written_samples), written_sample) ? 0 : 1;
    return written;
}

// Whether at least 1/policy::written::used_part of the samples hold data.
inline bool mostly_written(const char* p, Bytes bytes) {
    return count_written(p, bytes) * policy::written::used_part >= written_samples;
}

}  // namespace numalloc
