// How much more memory may become resident before a thread must check whether the process is near its memory limit, if
// it has one (heap/thread/limit.h). Counted where bags without pages are taken, and where returned pages of bags come
// into use again.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.h"

namespace numalloc {

class Growth {
public:
    // Without a limit nothing is counted, so that nodes do not share a line that is written.
    void note(Bytes bytes) {
        if (left_.load(std::memory_order_relaxed) != unlimited)
            left_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    }
    // Bytes noted beyond what was allowed: much if a large block was taken, which nobody has touched yet.
    Bytes beyond() const {
        const std::int64_t left = left_.load(std::memory_order_relaxed);
        return left < 0 ? static_cast<Bytes>(-left) : 0;
    }
    bool is_due() const { return left_.load(std::memory_order_relaxed) <= 0; }
    void allow(Bytes bytes) { left_.store(static_cast<std::int64_t>(bytes), std::memory_order_relaxed); }
    void allow_all() { left_.store(unlimited, std::memory_order_relaxed); }

private:
    static constexpr std::int64_t unlimited = INT64_MAX;
    std::atomic<std::int64_t> left_{unlimited};
};
extern constinit Growth growth;

}  // namespace numalloc
