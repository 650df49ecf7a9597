// calloc and realloc of a big object: clears the bags that are marked dirty, and copies what is not zero.
// Memory fresh from the kernel, or returned to it, already reads as zero. The caller owns the run, so nothing here
// takes the heap's lock.
#include <cstring>

#include "heap/pages/page_heap.h"
#include "heap/pages/stretches.h"
#include "heap/pages/written.h"

namespace numalloc {

namespace policy::clearing {

// calloc discards dirty memory of 4 MiB or more of which no sample holds data, and looks at the rest in pieces of that
// length: parts of it may never have been written.
constexpr Bytes long_stretch = 4 * MiB;
// Of 32 MiB or more, it discards also pieces that are mostly zero. From this length on glibc always gets new pages from
// the kernel.
constexpr Bytes discarded_from = 32 * MiB;

// realloc discards dirty memory of 512 KiB or more to which it would copy data of which no sample holds any.
constexpr Bytes sampled_from = 512 * KiB;

// realloc looks for zeros in pieces of 4 KiB, and copies up to 64 KiB that are not, while they are in the cache.
constexpr Bytes compared = 4 * KiB;
constexpr Bytes copied_at_once = 64 * KiB;

}  // namespace policy::clearing

namespace {

constexpr std::uint32_t long_stretch = bags_in(policy::clearing::long_stretch);

// Writes no page that is zero already and stays so. `clean`: all of the target is zero.
void copy_what_is_not_zero(char* to, const char* from, Bytes bytes, bool clean) {
    Bytes copied = 0;
    for (Bytes done = 0, n; done < bytes; done += n) {
        n = min_of(policy::clearing::compared, bytes - done);
        const bool zero = is_zero(from + done, n);
        if (!zero && done + n < bytes && done - copied < policy::clearing::copied_at_once) continue;
        const Bytes end = zero ? done : done + n;
        if (copied < end) memcpy(to + copied, from + copied, end - copied);
        if (zero && !clean && !is_zero(to + done, n)) memset(to + done, 0, n);
        copied = done + n;
    }
}

// Whether to discard the range instead of clearing it. Clearing a huge page costs as much as faulting a new one in, so
// huge pages are discarded only if no sample holds data: they may never have been touched.
bool better_discarded(const char* p, Bytes bytes, bool only_zero) {
    return only_zero ? seems_unused(p, bytes) : !mostly_written(p, bytes);
}

}  // namespace

void PageHeap::clear(BagIndex run, Bytes bytes) {
    char* const start = static_cast<char*>(region_.address(run));
    const BagIndex to = run + divide_up(bytes, bag_bytes);
    const auto discarded = [&](BagIndex b, BagIndex end, bool only_zero) {
        char* const at = start + (Bytes{b - run} << bag_shift);
        const Bytes length = Bytes{end - b} << bag_shift;
        return better_discarded(at, length, only_zero || breaks_huge_page(b, end)) && os::discard(at, length);
    };
    const auto clear_piece = [&](BagIndex b, BagIndex end) {
        const Bytes offset = Bytes{b - run} << bag_shift;
        clear_written(start + offset, min_of(Bytes{end - b} << bag_shift, bytes - offset));
    };
    for_each_stretch(region_, run, to, [&](BagIndex b, BagIndex end, bool dirty) {
        if (!dirty) return true;
        // Strict binding has promised these pages, so it does not discard them.
        const bool is_long = end - b >= long_stretch && !options_.populate;
        const bool may_discard = is_long && end - b >= bags_in(policy::clearing::discarded_from);
        // All of it if no sample holds data, so that a long block needs few samples; else piece by piece, of which none
        // is too short to be sampled.
        if (is_long && discarded(b, end, true)) return true;
        for (BagIndex piece; b < end; b = piece) {
            piece = is_long && end - b >= 2 * long_stretch ? b + long_stretch : end;
            if (!may_discard || !discarded(b, piece, false)) clear_piece(b, piece);
        }
        return true;
    });
}

// Whether a copy of n bytes discards what was at the bag before.
bool PageHeap::discards_for(const char* source, BagIndex b, Bytes n) const {
    return n >= policy::clearing::sampled_from && !options_.populate && !breaks_huge_page(b, b + bags_in(n)) &&
           seems_unused(source, n);
}

void PageHeap::copy_to(BagIndex run, const void* from, Bytes bytes) const {
    char* const target = static_cast<char*>(region_.address(run));
    const char* const source = static_cast<const char*>(from);
    for_each_stretch(region_, run, run + divide_up(bytes, bag_bytes), [&](BagIndex b, BagIndex end, bool dirty) {
        const Bytes offset = Bytes{b - run} << bag_shift;
        const Bytes n = min_of(Bytes{end - b} << bag_shift, bytes - offset);
        // Not the page that the data ends in: its last bytes may be in use.
        const bool discards = dirty && discards_for(source + offset, b, n);
        const Bytes whole = discards ? align_down(n, Bytes{page_bags()} << bag_shift) : 0;
        const bool discarded = whole > 0 && os::discard(target + offset, whole);
        const Bytes clean = !dirty ? n : discarded ? whole : 0;
        copy_what_is_not_zero(target + offset, source + offset, clean, true);
        copy_what_is_not_zero(target + offset + clean, source + offset + clean, n - clean, false);
        return true;
    });
}

}  // namespace numalloc
