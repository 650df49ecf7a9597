// Moves a big object's pages to a new place instead of copying them. The kernel moves one mapping at a time, and a
// moved range is a mapping of its own afterwards: mappings merge by their page offsets, and these still belong to the
// old place. So
//   - a block is moved piece by piece, one mapping at a time, and short pieces are copied;
//   - where a block left, and where moved pages are purged, the region's natural mapping is put back, which
//     merges with its neighbours. BagMark::moved marks the bags that need this.
// Between two steps every byte is in exactly one of the two places, so a refusal at any step leaves the rest to copy.
#include <cstring>

#include "heap/pages/page_heap.h"
#include "heap/pages/written.h"

namespace numalloc {

namespace policy::moving {

// A piece shorter than 128 KiB is copied, because that is cheaper than moving it.
constexpr Bytes shortest = 128 * KiB;
// Under strict binding a copied block discards its source 1 MiB at a time: a small part of strict::margin.
constexpr Bytes copied_at_once = 1 * MiB;

}  // namespace policy::moving

// Notes that the bags lie in one moved mapping, or in the natural one again. A moved mapping that began before or among
// them and reaches beyond their end begins behind them now.
void PageHeap::note_mapping(BagIndex first, std::uint32_t bags, bool moved) {
    os::Guard guard(lock_);
    std::uint32_t count = moved_mappings() - region_.count(BagMark::moved_first, first, bags) + (moved ? 1 : 0);
    set(BagMark::moved_first, first, bags, false);
    set(BagMark::moved, first, bags, moved);
    if (moved) set(BagMark::moved_first, first, 1, true);
    const BagIndex next = first + bags;
    if (region_.is_mapped(next) && region_.count(BagMark::moved, next, 1) != 0 &&
        region_.count(BagMark::moved_first, next, 1) == 0) {
        set(BagMark::moved_first, next, 1, true);
        ++count;
    }
    moved_mappings_.store(count, std::memory_order_relaxed);
}

// Puts the region's natural mapping back, with the advice that is marked.
os::Replaced PageHeap::renew(BagIndex first, std::uint32_t bags) {
    const os::Replaced result = region_.renew(first, bags);
    if (result != os::Replaced::lost) advise_as_marked({first, first + bags}, true);
    if (result == os::Replaced::done) note_mapping(first, bags, false);
    return result;
}

// Moves pieces from the front while that works. Returns the number of bytes that are at `to` now.
Bytes PageHeap::move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last) {
    char* const source = static_cast<char*>(region_.address(from));
    char* const target = static_cast<char*>(region_.address(to));
    Bytes done = 0;
    while (done < bytes) {
        // The program may have split its block's mapping at any page; only whole bags move.
        const Bytes piece =
            align_down(os::mapping_length(source + done, bytes - done), Bytes{page_bags()} << bag_shift);
        last = piece == 0 ? os::Replaced::refused : os::Replaced::done;
        if (piece == 0) break;
        if (piece < policy::moving::shortest) {
            memcpy(target + done, source + done, piece);
        } else {
            last = os::move_mapping(source + done, target + done, piece);
            if (last != os::Replaced::done) break;
            note_mapping(to + bags_in(done), bags_in(piece), true);
            // A mapping keeps its advice.
            const bool normal = region_.count(BagMark::normal, from + bags_in(done), 1) != 0;
            os::Guard guard(lock_);
            set_normal({to + bags_in(done), to + bags_in(done + piece)}, normal);
        }
        done += piece;
    }
    return done;
}

// Copies what was not moved. Strict binding counted no pages for that, so each copied piece discards its source.
// Returns whether the whole source was discarded.
bool PageHeap::copy(BagIndex from, BagIndex to, Bytes done, Bytes bytes) {
    char* const source = static_cast<char*>(region_.address(from));
    const Bytes step = options_.populate ? policy::moving::copied_at_once : bytes;
    // If a part was moved, its short pieces were copied, and their source still holds data.
    bool given_back = options_.populate && done == 0;
    for (; done < bytes; done += step) {
        const Bytes piece = min_of(step, bytes - done);
        // Strict binding has promised all pages of the target, and the copy is what puts them there.
        if (options_.populate) memcpy(region_.address(to + bags_in(done)), source + done, piece);
        else copy_to(to + bags_in(done), source + done, piece);
        given_back = given_back && os::discard(source + done, piece);
    }
    return given_back;
}

bool PageHeap::move(BagIndex from, BagIndex to, std::uint32_t bags) {
    bags = whole_pages(bags);
    const Bytes bytes = Bytes{bags} << bag_shift;
    // Moving pages onto resident ones would throw these away, and the next user of the place left behind would fault,
    // so a copy is cheaper. Strict binding put no pages at `to`. The dirty marks only say what may be resident, so both
    // places are sampled: copying memory that was never touched would make it resident.
    const auto mostly_used = [&](BagIndex b) {
        return mostly_written(static_cast<const char*>(region_.address(b)), bytes);
    };
    const bool copied = !options_.populate && region_.count_dirty(to, bags) > bags / policy::written::used_part &&
                        mostly_used(to) && mostly_used(from);
    // Locked memory (mlockall) refuses the discard: moving it would leave the source unlocked. The discard also tells
    // libraries with registered memory about the pages that the move replaces (os/libc_call.h).
    const bool movable = !copied && moved_mappings() < options_.most_moved && os::discard(region_.address(to), bytes);
    os::Replaced last = os::Replaced::refused;
    const Bytes done = movable ? move_pieces(from, to, bytes, last) : 0;
    if (last == os::Replaced::lost) {
        memcpy(region_.address(from), region_.address(to), done);
        return false;
    }
    if (movable && last == os::Replaced::refused) settle(to + bags_in(done), bags - bags_in(done));
    const bool given_back = copy(from, to, done, bytes);

    os::Replaced renewed = os::Replaced::refused;
    if (done > 0) renewed = renew(from, bags);
    if (renewed == os::Replaced::lost) return true;  // `from` stays allocated forever
    give(from, renewed == os::Replaced::done || given_back ? Contents::zero : Contents::any);
    return true;
}

}  // namespace numalloc
