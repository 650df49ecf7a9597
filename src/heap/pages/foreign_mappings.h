// The mappings of others in a node's region that the heap stepped over when it grew (top.cpp). The bags that they cover
// stay allocated forever: they are not the heap's to bind, advise or purge.
//
// Invariants:
//   the ranges are in the order of their addresses, disjoint, and below the top of the heap; none is ever removed
//   only the first 16 are known: a reader must not fail at a foreign bag that it does not recognise
//
// Thread-safe for any number of readers, which take no lock, beside one add() at a time.
#pragma once

#include <atomic>

#include "base/bits.h"
#include "base/ids.h"

namespace numalloc {

class ForeignMappings {
public:
    // `range` lies behind all that were added before. The page heap's growth lock allows one caller at a time.
    void add(BagRange range) {
        const std::uint32_t known = known_.load(std::memory_order_relaxed);
        if (known == most) return;
        range_[known] = range;
        known_.store(known + 1, std::memory_order_release);
    }

    // Whether the bag lies in one of them.
    bool has(BagIndex b) const {
        for (std::uint32_t i = 0, n = known(); i < n; ++i)
            if (b >= range_[i].first && b < range_[i].end) return true;
        return false;
    }

    // The part of `range` around its bag `b`, which is in none of them, up to the next of them on either side.
    BagRange between(BagRange range, BagIndex b) const {
        for (std::uint32_t i = 0, n = known(); i < n; ++i) {
            if (range_[i].end <= b) range.first = max_of(range.first, range_[i].end);
            else range.end = min_of(range.end, range_[i].first);
        }
        return range;
    }

    // Calls visit(part) for each part of `range` that lies in none of them. If as many are known as can be, there may
    // be more behind them: nothing behind the last is visited then.
    template <class Visit>
    void each_part_of_ours(BagRange range, Visit visit) const {
        const std::uint32_t n = known();
        if (n == most) range.end = min_of(range.end, range_[n - 1].end);
        for (std::uint32_t i = 0; i < n && range_[i].first < range.end; ++i) {
            if (range_[i].end <= range.first) continue;
            if (range_[i].first > range.first) visit(BagRange{range.first, range_[i].first});
            range.first = range_[i].end;
        }
        if (range.first < range.end) visit(range);
    }

private:
    static constexpr std::uint32_t most = 16;
    std::uint32_t known() const { return known_.load(std::memory_order_acquire); }

    BagRange range_[most];
    std::atomic<std::uint32_t> known_{0};  // the ranges before this index never change
};

}  // namespace numalloc
