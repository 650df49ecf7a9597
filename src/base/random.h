// Pseudo-random numbers (splitmix64): fast, and as good as their seed. Take the seed of a secret from os/seeds.h.
#pragma once

#include "base/bits.h"

namespace numalloc {

class Random {
public:
    constexpr explicit Random(std::uint64_t seed) : state_(seed) {}
    // One of 2^64 values, all equally likely.
    std::uint64_t next() { return mixed(state_ += step); }
    // A number below `limit`, which is below 2^32. The likeliest exceeds a fair share by at most limit / 2^32 of it.
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((next() >> 32) * limit >> 32); }

    static constexpr std::uint64_t step = 0x9E3779B97F4A7C15U;
    static constexpr std::uint64_t mixed(std::uint64_t x) {
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
        return x ^ (x >> 31);
    }

private:
    std::uint64_t state_;
};

}  // namespace numalloc
