// Bags in a row that are dirty, or that are not, one such stretch after the other.
#pragma once

#include "heap/space/region.h"

namespace numalloc {

// visit(first, end, dirty) for each stretch of [from, to), until it says false.
template <class Visit>
void for_each_stretch(const Region& region, BagIndex from, BagIndex to, Visit visit) {
    const auto is_dirty = [&](BagIndex b) { return region.count_dirty(b, 1) != 0; };
    for (BagIndex b = from; b < to;) {
        const bool dirty = is_dirty(b);
        BagIndex end = b + 1;
        while (end < to && is_dirty(end) == dirty) {
            // A word of marks at a time where it is all the same.
            const bool whole =
                end.value % 64 == 0 && to - end >= 64 && region.count_dirty(end, 64) == (dirty ? 64U : 0U);
            end = end + (whole ? 64 : 1);
        }
        if (!visit(b, end, dirty)) return;
        b = end;
    }
}

}  // namespace numalloc
