// The free bags of one node: runs, found by length, and in them pieces, found by age (bag.h has the drawing).
//
//   add      a range becomes free, and coalesces with its free neighbours          O(log n) of n runs
//   find     the lowest run that holds N bags at an alignment                      O(log n)
//   cut      a range of a run is no longer free                                    O(log n), and the pieces in it
//   oldest   the dirty piece to be purged first                                    O(1)
//
// Nothing here counts the bags of a run, nor walks a run that is not cut: a request costs as much beside a free run of
// a terabyte as beside one of a bag.
//
// Invariants:
//   two free runs are never neighbours; the pieces of a run follow each other without a gap
//   the queue holds the dirty pieces and no others, the oldest first
//   dirty(), kept() == the sum of the lengths of the pieces of that kind;  dirty() + kept() <= bags()
//
// Not thread-safe: the page heap's lock guards it.
#pragma once

#include "heap/pages/run_tree.h"
#include "heap/space/region.h"

namespace numalloc {

class FreeRuns {
public:
    using Piece = Bag::Piece;

    // Dirty pieces that became free within `together` milliseconds of each other become one.
    void start(Region& region, std::uint32_t together);
    void set_together(std::uint32_t together) { together_ = together; }

    // The range lies below `top` and is of no run: its first bag's entry says `inside`.
    void add(BagIndex first, std::uint32_t bags, Piece kind, std::uint32_t since, BagIndex top);
    // The lowest free run in which `bags` bags begin at a multiple of `alignment` bags (a power of two) from address 0,
    // and where; no_bag.
    struct Place {
        BagIndex run, first;
    };
    Place find(std::uint32_t bags, std::uint32_t alignment) const;
    // The range, of the run, is no longer free. BagMark::dirty of its bags says from now on which may hold other than
    // zeros. How many may. `near`: a piece of the run at or before `first`; what lies between them is walked.
    std::uint32_t cut(BagIndex run, BagIndex first, std::uint32_t bags, BagIndex near);
    std::uint32_t cut(Place at, std::uint32_t bags) { return cut(at.run, at.first, bags, at.run); }

    // The first bag from `b` on whose address is a multiple of `alignment` bags.
    BagIndex aligned(BagIndex b, std::uint32_t alignment) const;

    // The first bag of the run that ends before `b`, or begins at it; no_bag if that one is not free.
    BagIndex run_before(BagIndex b) const;
    bool begins_at(BagIndex b, BagIndex top) const { return b < top && entry(b).state == BagState::free; }
    // The first run that begins at the bag or behind it, or no_bag.
    BagIndex next_run(BagIndex b) const { return tree_.find(1, b); }
    // The run that the free bag lies in.
    BagIndex run_of(BagIndex b) const { return tree_.at_or_below(b); }
    std::uint32_t length(BagIndex run) const { return entry(run).run; }
    // The piece whose last bag is the one before `end`, in a free run; and the last of a run.
    BagIndex piece_before(BagIndex end) const;
    BagIndex last_piece(BagIndex run) const { return piece_before(run + length(run)); }

    const Bag::Free& piece(BagIndex first) const { return entry(first).free; }
    // The dirty pieces that have been free for longest and for shortest, or no_bag.
    BagIndex oldest() const { return oldest_; }
    BagIndex newest() const { return newest_; }
    // The piece is not asked for again by age: the kernel would not have it.
    void keep(BagIndex piece);

    std::uint64_t bags() const { return bags_; }
    std::uint32_t dirty() const { return dirty_; }
    std::uint32_t kept() const { return kept_; }

    // Debug builds: all of the above, for the bags of [first, top).
    void validate(BagIndex first, BagIndex top) const;

private:
    Bag& entry(BagIndex b) const {
        count_step();
        return region_->bag(b);
    }
    void write_piece(BagIndex first, std::uint32_t bags, Piece kind, std::uint32_t since);
    void mark_last(BagIndex piece);
    void write_run(BagIndex first, std::uint32_t bags);
    std::uint32_t take_out(BagIndex run);
    bool are_one(const Bag::Free& a, const Bag::Free& b) const;
    void join(BagIndex left, BagIndex right);
    void split(BagIndex piece, BagIndex at);
    void enqueue(BagIndex piece);
    void dequeue(BagIndex piece);
    void stand_in(BagIndex piece, BagIndex for_piece);
    void join_links(BagIndex piece);

    Region* region_ = nullptr;
    RunTree tree_;
    BagIndex oldest_, newest_;
    std::uint32_t dirty_ = 0;
    std::uint32_t kept_ = 0;
    std::uint32_t together_ = 0;
    std::uint64_t bags_ = 0;
};

}  // namespace numalloc
