// Where the player's choices come from: the bytes of a fuzzer, then zeros; or random ones without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fuzz {

class Input {
public:
    Input(const unsigned char* bytes, std::size_t count) : next_(bytes), end_(bytes + count) {}
    explicit Input(std::uint64_t seed) : state_(seed * 2 + 1), next_(random_), end_(random_) {}
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;

    bool more() const { return next_ != end_ || state_ != 0; }

    // 0 to bound - 1.
    std::size_t below(std::size_t bound) {
        std::size_t value = byte();
        for (std::size_t reach = 256; reach < bound; reach *= 256) value = value * 256 + byte();
        return value % bound;
    }

private:
    unsigned char byte() {
        if (next_ == end_) {
            if (state_ == 0) return 0;
            refill();
        }
        return *next_++;
    }
    void refill() {
        for (std::size_t at = 0; at < sizeof random_; at += 8) {
            state_ ^= state_ << 13;
            state_ ^= state_ >> 7;
            state_ ^= state_ << 17;
            const std::uint64_t word = state_ * 0x2545F4914F6CDD1DULL;
            std::memcpy(random_ + at, &word, 8);
        }
        next_ = random_;
        end_ = random_ + sizeof random_;
    }

    std::uint64_t state_ = 0;
    unsigned char random_[1024];
    const unsigned char* next_;
    const unsigned char* end_;
};

}  // namespace fuzz
