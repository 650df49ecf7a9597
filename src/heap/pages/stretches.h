// Visits bags in a row as stretches in which all bags have a mark, or none has it. (huge_page_advice.h has stretches of
// another kind.)
#pragma once

#include "heap/space/region.h"

namespace numalloc {

// Calls visit(first, end, marked) for each stretch of [from, to), until it returns false.
template <class Visit>
void for_each_stretch(const Region& region, BagMark mark, BagIndex from, BagIndex to, Visit visit) {
    const auto is_marked = [&](BagIndex b) { return region.count(mark, b, 1) != 0; };
    for (BagIndex b = from; b < to;) {
        const bool marked = is_marked(b);
        BagIndex end = b + 1;
        while (end < to && is_marked(end) == marked) {
            // Skip a whole word of marks if all 64 are equal.
            const bool whole =
                end.value % 64 == 0 && to - end >= 64 && region.count(mark, end, 64) == (marked ? 64U : 0U);
            end = end + (whole ? 64 : 1);
        }
        if (!visit(b, end, marked)) return;
        b = end;
    }
}

// The same for BagMark::dirty.
template <class Visit>
void for_each_stretch(const Region& region, BagIndex from, BagIndex to, Visit visit) {
    for_each_stretch(region, BagMark::dirty, from, to, visit);
}

}  // namespace numalloc
