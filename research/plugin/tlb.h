// SPDX-License-Identifier: GPL-2.0-or-later
// Translation lookaside buffers: a first level for each size of pages and a second for both.
#pragma once
#include <cstdint>
#include <vector>

#include "cache.h"
#include "counters.h"

namespace scope {

struct TlbGeometry {
    Geometry l1_4k{64, 4}, l1_2m{32, 4}, l2{1536, 12};
};

// What a walk through the page tables found. A gigabyte page counts as its pages of two megabytes.
struct Walk {
    bool huge = false;
    unsigned lines_local = 0, lines_remote = 0;
};

class Tlb {
public:
    explicit Tlb(const TlbGeometry& geometry)
        : small_(geometry.l1_4k),
          huge_(geometry.l1_2m),
          second_(geometry.l2),
          latest_small_(small_.partition(), ~uint64_t{0}),
          latest_huge_(huge_.partition(), ~uint64_t{0}) {}

    // The page that its set used last is found without a search.
    bool hit_latest(uint64_t address) const {
        const uint64_t page = address >> 12, large = address >> 21;
        return latest_small_[page & (latest_small_.size() - 1)] == page ||
               latest_huge_[large & (latest_huge_.size() - 1)] == large;
    }

    // The first level.
    bool hit(uint64_t address) {
        const uint64_t page = address >> 12, large = address >> 21;
        if (small_.use(page) != NO_SLOT) return set_latest(latest_small_, page);
        return huge_.use(large) != NO_SLOT && set_latest(latest_huge_, large);
    }

    // What hit() did not find. `walk()` is asked when the second level does not know the page either.
    template <class WalkTables> void miss(uint64_t address, const Who& who, WalkTables walk) {
        const uint64_t page = address >> 12, large = address >> 21;
        who.each([](Counts& counts) { ++counts.tlb.l1_misses; });
        if (second_.use(page) != NO_SLOT) return put_first(small_, latest_small_, page);
        if (second_.use(large | HUGE) != NO_SLOT) return put_first(huge_, latest_huge_, large);
        const Walk found = walk();
        who.each([&](Counts& counts) {
            ++counts.tlb.l2_misses;
            counts.tlb.walk_lines_local += found.lines_local;
            counts.tlb.walk_lines_remote += found.lines_remote;
        });
        put(second_, found.huge ? large | HUGE : page);
        if (found.huge) put_first(huge_, latest_huge_, large);
        else put_first(small_, latest_small_, page);
    }

    void forget(uint64_t address) {
        set_latest(latest_small_, address >> 12, ~uint64_t{0});
        set_latest(latest_huge_, address >> 21, ~uint64_t{0});
        drop(small_, address >> 12);
        drop(huge_, address >> 21);
        drop(second_, address >> 12);
        drop(second_, address >> 21 | HUGE);
    }

private:
    static constexpr uint64_t HUGE = uint64_t{1} << 60;  // keeps keys of the two sizes apart
    struct Nothing {};
    using Pages = SetCache<uint64_t, Nothing>;

    static void put(Pages& pages, uint64_t key) { pages.put(pages.room(key), key, {}); }
    static bool set_latest(std::vector<uint64_t>& latest, uint64_t key, uint64_t value) {
        latest[key & (latest.size() - 1)] = value;
        return true;
    }
    static bool set_latest(std::vector<uint64_t>& latest, uint64_t key) { return set_latest(latest, key, key); }

    static void put_first(Pages& pages, std::vector<uint64_t>& latest, uint64_t key) {
        put(pages, key);
        set_latest(latest, key);
    }

    static void drop(Pages& pages, uint64_t key) {
        if (const uint32_t slot = pages.find(key); slot != NO_SLOT) pages.remove(slot);
    }

    Pages small_, huge_, second_;
    std::vector<uint64_t> latest_small_, latest_huge_;  // of each set; where that is no power of two, of all
};

}  // namespace scope
