// Visits bags in a row as stretches in which all bags are dirty, or none is.
#pragma once

#include "heap/space/region.h"

namespace numalloc {

// Calls visit(first, end, dirty) for each stretch of [from, to), until it returns false.
template <class Visit>
void for_each_stretch(const Region& region, BagIndex from, BagIndex to, Visit visit) {
    const auto is_dirty = [&](BagIndex b) { return region.count_dirty(b, 1) != 0; };
    for (BagIndex b = from; b < to;) {
        const bool dirty = is_dirty(b);
        BagIndex end = b + 1;
        while (end < to && is_dirty(end) == dirty) {
            // Skip a whole word of marks if all 64 are equal.
            const bool whole =
                end.value % 64 == 0 && to - end >= 64 && region.count_dirty(end, 64) == (dirty ? 64U : 0U);
            end = end + (whole ? 64 : 1);
        }
        if (!visit(b, end, dirty)) return;
        b = end;
    }
}

}  // namespace numalloc
