#pragma once

#include <bit>
#include <cstdint>

namespace bench {

/// Scatters the bits of x (the finaliser of splitmix64).
inline std::uint64_t scatter(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// A small, fast source of random numbers (xorshift64*). Each thread has its own.
class Random {
public:
    /// The same seed and thread give the same numbers.
    explicit Random(std::uint64_t seed, std::uint64_t thread = 0) : state_(scatter(seed * 0x10001 + thread) | 1) {}

    std::uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1d;
    }

    /// From 0 to limit - 1. Slightly uneven for limits near 2^32, which are not used.
    std::uint64_t below(std::uint64_t limit) { return ((next() >> 32) * limit) >> 32; }

    /// From low to high, both included.
    std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }

    /// A size from 2^low to just below 2^high, each doubling equally likely: small ones are frequent.
    std::uint64_t size(unsigned low, unsigned high) {
        const unsigned e = low + static_cast<unsigned>(below(high - low));
        return (std::uint64_t{1} << e) + below(std::uint64_t{1} << e);
    }

private:
    std::uint64_t state_;
};

}  // namespace bench
