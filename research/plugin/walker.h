// SPDX-License-Identifier: GPL-2.0-or-later
// Walks the guest's page tables as a processor would: for the size of a page, and to see whose memory the tables
// are in. Caches of the upper levels save it most of the way, as in real processors.
#pragma once
#include <cstdint>

#include "tlb.h"
#include "topology.h"

namespace scope {

class Walker {
public:
    // `read(physical)`: eight bytes of memory.
    template <class Read> Walk walk(uint64_t root, uint64_t address, unsigned node, const Topology& topology,
                                    Read read) {
        constexpr uint64_t PRESENT = 1, LARGE = 1 << 7, FRAME = 0x000ffffffffff000;
        Walk found;
        const unsigned first = known(address);
        uint64_t table = root & FRAME;
        for (unsigned level = 0; level < LEVELS; ++level) {
            const unsigned shift = 39 - 9 * level;
            const uint64_t entry_at = table + 8 * (address >> shift & 0x1ff);
            const uint64_t entry = read(entry_at);
            if (level >= first) {
                const uint32_t line = topology.line_of(entry_at);
                const bool local = line != NO_LINE && topology.home(line) == node;
                ++(local ? found.lines_local : found.lines_remote);
            }
            if (!(entry & PRESENT)) break;
            if ((level == 1 || level == 2) && (entry & LARGE)) {
                found.huge = true;
                break;
            }
            table = entry & FRAME;
            if (level == 1 || level == 2) remember(level == 1 ? directories_ : tables_, address >> shift);
        }
        return found;
    }

private:
    struct Nothing {};
    using Upper = SetCache<uint64_t, Nothing>;
    static constexpr unsigned LEVELS = 4;

    // The level at which the walk begins.
    unsigned known(uint64_t address) {
        if (tables_.use(address >> 21) != NO_SLOT) return 3;
        return directories_.use(address >> 30) != NO_SLOT ? 2 : 0;
    }

    static void remember(Upper& upper, uint64_t key) {
        if (upper.use(key) == NO_SLOT) upper.put(upper.room(key), key, {});
    }

    Upper tables_{{32, 4}}, directories_{{4, 4}};
};

}  // namespace scope
