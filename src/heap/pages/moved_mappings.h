// The mappings of moved blocks. The kernel moves one mapping at a time, and a moved range is a mapping of its own
// afterwards: mappings merge by their page offsets, and these still belong to the old place. So
//   - a block is moved piece by piece, one mapping at a time, and short pieces are copied;
//   - where a block left, and where moved pages are purged, the region's natural mapping is put back, which
//     merges with its neighbours. BagMark::moved marks the bags that need this.
//
// Invariant:
//   moved_mappings() == number of bags that BagMark::moved_first marks: the first bag of each moved mapping
#pragma once

#include <atomic>

#include "heap/pages/huge_page_advice.h"

namespace numalloc {

class MovedMappings : public HugePageAdvice {
public:
    // The number of mappings that moved blocks lie in.
    std::uint32_t moved_mappings() const { return moved_mappings_.load(std::memory_order_relaxed); }

protected:
    // Moves or, where that is cheaper, copies pieces from the front of run `from` to run `to` (whole pages, discarded
    // before) until the kernel refuses one. BagMark::moved and ::normal follow. Returns the number of bytes that are at
    // `to` now; `last`: the kernel's answer for the last piece, `done` for a copied one.
    Bytes move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last) NUMALLOC_EXCLUDES(lock_);
    // Puts the region's natural mapping back, bound, and advised as marked. done: the bags read as zero. refused: they
    // are as before. lost: they are not mapped and must never be used.
    os::Replaced renew(BagIndex first, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

private:
    void note_mapping(BagIndex first, std::uint32_t bags, bool moved) NUMALLOC_EXCLUDES(lock_);

    std::atomic<std::uint32_t> moved_mappings_{0};  // written under lock_, read without
};

}  // namespace numalloc
