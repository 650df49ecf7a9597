// Moves a big object's pages to a new place instead of copying them (moved_mappings.h). Between two steps every byte is
// in exactly one of the two places, so a refusal at any step leaves the rest to copy.
#include <cstring>

#include "heap/pages/page_heap.h"
#include "heap/pages/written.h"

namespace numalloc {

namespace policy::moving {

// Under strict binding a copied block discards its source 1 MiB at a time: a small part of strict::margin.
constexpr Bytes copied_at_once = 1 * MiB;

}  // namespace policy::moving

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

// The kernel has unmapped a part of the run: it stays allocated forever, and nobody's.
void PageHeap::lose(BagIndex run) {
    os::Guard guard(lock_);
    use_.big_bags -= bag(run).run;
    --use_.big_objects;
    write_used_run(run, bag(run).run, BagState::small);
}

bool PageHeap::move(BagIndex from, BagIndex to, std::uint32_t bags, Moves how) {
    bags = whole_pages(bags);
    const Bytes bytes = Bytes{bags} << bag_shift;
    // Moving pages onto resident ones would throw these away, and the next user of the place left behind would fault,
    // so a copy is cheaper. Strict binding put no pages at `to`. The dirty marks only say what may be resident, so both
    // places are sampled: copying memory that was never touched would make it resident.
    const auto mostly_used = [&](BagIndex b) {
        return mostly_written(static_cast<const char*>(region_.address(b)), bytes);
    };
    const bool copied = how == Moves::by_copy || (how == Moves::cheaply && !options_.populate &&
                                                  region_.count_dirty(to, bags) > bags / policy::written::used_part &&
                                                  mostly_used(to) && mostly_used(from));
    // Locked memory (mlockall) refuses the discard: moving it would leave the source unlocked. The discard also tells
    // libraries with registered memory about the pages that the move replaces (os/libc_call.h).
    // A thread of another node would find this node's pages in the rest, too.
    const Bytes away = how == Moves::by_pages ? Bytes{bag(to).run} << bag_shift : bytes;
    const bool movable = !copied && moved_mappings() < options_.most_moved && os::discard(region_.address(to), away);
    if (how == Moves::by_pages) unbind_run(to);
    os::Replaced last = os::Replaced::refused;
    const Bytes done = movable ? move_pieces(from, to, bytes, last) : 0;
    if (last == os::Replaced::lost) {
        memcpy(region_.address(from), region_.address(to), done);
        lose(to);
        return false;
    }
    // A mapping keeps its policy, which may be that of inherited memory.
    if (done > 0 && from < region_.bound_from()) region_.bind(to, bags_in(done));
    if (movable && last == os::Replaced::refused) settle(to + bags_in(done), bags - bags_in(done));
    const bool given_back = copy(from, to, done, bytes);

    os::Replaced renewed = os::Replaced::refused;
    if (done > 0) renewed = renew(from, bags);
    if (renewed == os::Replaced::lost) lose(from);
    else give(from, renewed == os::Replaced::done || given_back ? Contents::zero : Contents::any);
    return true;
}

}  // namespace numalloc
