// calloc of a big object. What the kernel gave, or was given back to it, is zero already: a mark a bag
// says where. The caller owns the run, so that nothing here takes the heap's lock.
#include <cstring>

#include "heap/pages/page_heap.h"
#include "heap/pages/stretches.h"
#include "os/mapping.h"

namespace numalloc {

namespace {

// A longer stretch may never have been written to since it was taken: it is looked at in pieces.
constexpr std::uint32_t long_stretch = static_cast<std::uint32_t>(4 * MiB / bag_bytes);

// To write to a page that is there takes 0.1 of a microsecond, to fault it in 0.9, to give it back 0.1.
// Who used less than half of it will do so again: then giving all of it back is cheaper. (A page that was only
// read counts as used.)
bool better_discarded(void* p, Bytes bytes) { return os::resident_bytes(p, bytes) < bytes / 2; }

}  // namespace

void PageHeap::clear(BagIndex run, Bytes bytes) {
    char* const start = static_cast<char*>(region_.address(run));
    const BagIndex to = run + divide_up(bytes, bag_bytes);
    const auto clear_piece = [&](BagIndex b, BagIndex end, bool discard) {
        const Bytes offset = Bytes{b - run} << bag_shift;
        const Bytes length = Bytes{end - b} << bag_shift;
        if (discard && better_discarded(start + offset, length) && os::discard(start + offset, length)) return;
        memset(start + offset, 0, min_of(length, bytes - offset));
    };
    for_each_stretch(region_, run, to, [&](BagIndex b, BagIndex end, bool dirty) {
        if (!dirty) return true;
        // Under strict binding the pages are promised, and stay.
        const bool may_discard = end - b >= long_stretch && !options_.populate;
        for (BagIndex piece; b < end; b = piece) {
            piece = may_discard ? min_of(b + long_stretch, end) : end;
            clear_piece(b, piece, may_discard);
        }
        return true;
    });
}

}  // namespace numalloc
