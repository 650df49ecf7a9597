// SPDX-License-Identifier: GPL-2.0-or-later
// Translation lookaside buffers: a first level for each size of pages and a second for both.
#pragma once
#include <cstdint>

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
    explicit Tlb(const TlbGeometry& geometry) : small_(geometry.l1_4k), huge_(geometry.l1_2m), second_(geometry.l2) {}

    // `walk()` is asked when neither level knows the page.
    template <class WalkTables> void translate(uint64_t address, const Who& who, WalkTables walk) {
        const uint64_t page = address >> 12, large = address >> 21;
        if (small_.use(page) != NO_SLOT || huge_.use(large) != NO_SLOT) return;
        who.each([](Counts& counts) { ++counts.tlb.l1_misses; });
        if (second_.use(page) != NO_SLOT) return put(small_, page);
        if (second_.use(large | HUGE) != NO_SLOT) return put(huge_, large);
        const Walk found = walk();
        who.each([&](Counts& counts) {
            ++counts.tlb.l2_misses;
            counts.tlb.walk_lines_local += found.lines_local;
            counts.tlb.walk_lines_remote += found.lines_remote;
        });
        put(second_, found.huge ? large | HUGE : page);
        found.huge ? put(huge_, large) : put(small_, page);
    }

    void forget(uint64_t address) {
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
    static void drop(Pages& pages, uint64_t key) {
        if (const uint32_t slot = pages.find(key); slot != NO_SLOT) pages.remove(slot);
    }

    Pages small_, huge_, second_;
};

}  // namespace scope
