// Numbers by chance (splitmix64): fast, and as good as their seed. A secret is to be seeded by os/seeds.h.
#pragma once

#include "base/bits.h"

namespace numalloc {

class Random {
public:
    constexpr explicit Random(std::uint64_t seed) : state_(seed) {}
    // Any of 2^64, all equally likely.
    std::uint64_t next() { return mixed(state_ += step); }
    // Any below the limit, which is below 2^32; the likeliest is so by limit / 2^32 at most.
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
