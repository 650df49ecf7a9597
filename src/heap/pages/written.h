// Whether memory was written to, found out without a system call.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"

namespace numalloc {

namespace policy::written {

// Memory counts as used if at least half of it is not zero. Below half it is cheaper to discard it, since the program
// will probably leave it unused again and take few faults.
constexpr Bytes used_part = 2;

}  // namespace policy::written

// Whether all bytes are zero; false if there are less than 8. Stops at the first one that is not.
inline bool is_zero(const char* p, Bytes bytes) {
    std::uint64_t first;
    if (bytes < sizeof first) return false;
    std::memcpy(&first, p, sizeof first);
    return first == 0 && std::memcmp(p, p + sizeof first, bytes - sizeof first) == 0;
}

// Zeroes memory, but writes to no page of 4 KiB whose part of it reads as zero: a page that nobody has touched uses no
// memory until it is written to.
inline void clear_written(char* p, Bytes bytes) {
    constexpr Bytes page = 4 * KiB;
    Bytes cleared = 0;
    for (Bytes done = 0, n; done < bytes; done += n) {
        n = min_of(page - address_of(p + done) % page, bytes - done);
        if (!is_zero(p + done, n)) continue;
        std::memset(p + cleared, 0, done - cleared);
        cleared = done + n;
    }
    if (cleared < bytes) std::memset(p + cleared, 0, bytes - cleared);
}

// The offset of a sample in the i-th of equal parts of memory: pseudo-random, so that data at regular distances is
// neither always hit nor always missed.
constexpr Bytes written_sample = 4 * KiB;
constexpr Bytes sample_in(std::uint64_t i, Bytes part) {
    const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
    return i * part + align_down(mixed % (part - written_sample + 1), written_sample);
}

// The caller of the functions below owns the memory, at least 4 KiB for each sample, of which one is in each equal
// part. Reading memory that nobody has touched costs a page fault, and maps the kernel's zero page.

// Whether at least 1/policy::written::used_part of 32 samples hold a byte that is not zero.
inline bool mostly_written(const char* p, Bytes bytes) {
    constexpr unsigned samples = 32;
    NUMALLOC_ASSERT(bytes >= samples * written_sample);
    unsigned written = 0;
    for (std::uint64_t i = 0; i < samples; ++i)
        written += is_zero(p + sample_in(i, bytes / samples), written_sample) ? 0 : 1;
    return written * policy::written::used_part >= samples;
}

// Whether none of 8 samples does: memory of which half was written to is missed once in 256 times.
inline bool seems_unused(const char* p, Bytes bytes) {
    constexpr unsigned samples = 8;
    NUMALLOC_ASSERT(bytes >= samples * written_sample);
    for (std::uint64_t i = 0; i < samples; ++i)
        if (!is_zero(p + sample_in(i, bytes / samples), written_sample)) return false;
    return true;
}

}  // namespace numalloc
