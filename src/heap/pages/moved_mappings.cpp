#include "heap/pages/moved_mappings.h"

#include <cstring>

namespace numalloc {

namespace policy::moving {

// A piece shorter than 128 KiB is copied, because that is cheaper than moving it.
constexpr Bytes shortest = 128 * KiB;

}  // namespace policy::moving

// Notes that the bags lie in one moved mapping, or in the natural one again. A moved mapping that began before or among
// them and reaches beyond their end begins behind them now.
void MovedMappings::note_mapping(BagIndex first, std::uint32_t bags, bool moved) {
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

os::Replaced MovedMappings::renew(BagIndex first, std::uint32_t bags) {
    const os::Replaced result = region_.renew(first, bags);
    if (result != os::Replaced::lost) advise_as_marked({first, first + bags}, true);
    if (result == os::Replaced::done) note_mapping(first, bags, false);
    return result;
}

Bytes MovedMappings::move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last) {
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
            last = os::Replaced::refused;
            if (moved_mappings() >= options_.most_moved) break;
            last = os::move_mapping(source + done, target + done, piece);
            if (last != os::Replaced::done) break;
            note_mapping(to + bags_in(done), bags_in(piece), true);
            // A mapping keeps its advice. Before huge_from() it has normal pages whatever the mark.
            const BagIndex first = from + bags_in(done);
            const bool normal =
                (options_.huge_pages && first < region_.huge_from()) || region_.count(BagMark::normal, first, 1) != 0;
            os::Guard guard(lock_);
            set_normal({to + bags_in(done), to + bags_in(done + piece)}, normal);
        }
        done += piece;
    }
    return done;
}

}  // namespace numalloc
