// A set of small numbers (CPUs, nodes) in the kernel's format: words of 64 bits, lowest first.
#pragma once

#include <cstdint>

#include "base/bits.h"

namespace numalloc {

template <unsigned Bits>
class BitSet {
public:
    static constexpr unsigned bits = Bits;
    static constexpr unsigned words = Bits / 64;
    static_assert(Bits % 64 == 0);

    constexpr bool test(unsigned i) const { return i < Bits && (word_[i / 64] >> (i % 64) & 1) != 0; }
    // Ignores numbers beyond the set: on a larger machine CPUs are missing, but nothing is overwritten.
    constexpr void add(unsigned i) {
        if (i < Bits) word_[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    constexpr void remove(unsigned i) {
        if (i < Bits) word_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    }
    constexpr void clear() {
        for (auto& w : word_) w = 0;
    }

    constexpr unsigned count() const {
        unsigned n = 0;
        for (auto w : word_) n += count_ones(w);
        return n;
    }
    constexpr bool empty() const {
        for (auto w : word_)
            if (w != 0) return false;
        return true;
    }
    // The lowest member not below `from`, or Bits if there is none.
    constexpr unsigned next(unsigned from) const {
        for (unsigned w = from / 64; w < words; ++w) {
            std::uint64_t rest = word_[w];
            if (w == from / 64) rest &= ~std::uint64_t{0} << (from % 64);
            if (rest != 0) return w * 64 + static_cast<unsigned>(__builtin_ctzll(rest));
        }
        return Bits;
    }
    // The highest member below `from`, or Bits if there is none.
    constexpr unsigned previous(unsigned from) const {
        for (unsigned w = words; w-- > 0;) {
            std::uint64_t rest = from > w * 64 ? word_[w] : 0;
            if (from < (w + 1) * 64) rest &= (std::uint64_t{1} << (from % 64)) - 1;
            if (rest != 0) return w * 64 + 63 - static_cast<unsigned>(__builtin_clzll(rest));
        }
        return Bits;
    }
    constexpr unsigned first() const { return next(0); }

    constexpr bool intersects(const BitSet& other) const {
        for (unsigned w = 0; w < words; ++w)
            if ((word_[w] & other.word_[w]) != 0) return true;
        return false;
    }
    constexpr BitSet operator&(const BitSet& other) const {
        BitSet result;
        for (unsigned w = 0; w < words; ++w) result.word_[w] = word_[w] & other.word_[w];
        return result;
    }
    constexpr bool operator==(const BitSet&) const = default;

    std::uint64_t* data() { return word_; }
    const std::uint64_t* data() const { return word_; }

private:
    std::uint64_t word_[words] = {};
};

}  // namespace numalloc
