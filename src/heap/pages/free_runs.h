// The free bags of one node: runs, found by length, and the pieces of each run, found by age (drawing: bag.h).
//
//   add      a range becomes free and merges with its free neighbours              O(log n) of n runs, expected
//   find     the lowest run that holds N bags at an alignment                      O(log n)
//   cut      a range of a run is no longer free                                    O(log n), and the pieces before it
//   oldest   the dirty piece to purge first                                        O(1)
//
// No operation counts the bags of a run, or walks a run that it does not cut, so the length of a free run does not
// affect the cost of a request.
//
// Invariants:
//   two free runs are never adjacent; the pieces of a run follow each other without a gap
//   the queue holds exactly the dirty pieces, the oldest first
//   dirty(), stuck() == the sum of the lengths of the pieces of that kind;  dirty() + stuck() <= bags()
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

    // Frees a range below `top` that is in no run: its first bag has the state `inside`. `since`: milliseconds.
    void add(BagIndex first, std::uint32_t bags, Piece kind, std::uint32_t since, BagIndex top);
    // The lowest free run in which `bags` bags begin at a multiple of `alignment` bags (a power of two) from address 0,
    // and that beginning; no_bag if there is none. policy::runs::aligned_tries bounds the search, which may pass over a
    // run.
    struct Place {
        BagIndex run, first;
    };
    Place find(std::uint32_t bags, std::uint32_t alignment) const;
    // Cuts the range out of the run: it is no longer free. From now on BagMark::dirty says which of its bags may hold
    // other than zeros. Returns their number. `near`: a piece of the run at or before `first`, where the walk begins.
    std::uint32_t cut(BagIndex run, BagIndex first, std::uint32_t bags, BagIndex near);
    std::uint32_t cut(Place at, std::uint32_t bags) { return cut(at.run, at.first, bags, at.run); }

    // The first bag at or after `b` whose address is a multiple of `alignment` bags.
    BagIndex aligned(BagIndex b, std::uint32_t alignment) const;

    // The first bag of the free run that ends right before `b`; no_bag if the bag before `b` is not free.
    BagIndex run_before(BagIndex b) const;
    bool begins_at(BagIndex b, BagIndex top) const { return b < top && entry(b).state == BagState::free; }
    // The first run that begins at or after the bag, or no_bag.
    BagIndex next_run(BagIndex b) const { return tree_.find(1, b); }
    // The run that the free bag belongs to.
    BagIndex run_of(BagIndex b) const { return tree_.at_or_below(b); }
    std::uint32_t length(BagIndex run) const { return entry(run).run; }
    // The piece that ends right before `end`, in a free run; and the last piece of a run.
    BagIndex piece_before(BagIndex end) const;
    BagIndex last_piece(BagIndex run) const { return piece_before(run + length(run)); }

    const Bag::Free& piece(BagIndex first) const { return entry(first).free; }
    // The dirty pieces that have been free for the longest and the shortest time, or no_bag.
    BagIndex oldest() const { return oldest_; }
    BagIndex newest() const { return newest_; }
    // Makes a dirty piece stuck: takes it out of the queue, because the kernel cannot take its pages.
    void set_stuck(BagIndex piece);
    // Makes the stuck pieces of a run dirty, as if they had become free at `since`, which is now.
    void retry_stuck(BagIndex run, std::uint32_t since);

    std::uint64_t bags() const { return bags_; }
    std::uint32_t dirty() const { return dirty_; }
    std::uint32_t stuck() const { return stuck_; }

    // Debug builds: checks all of the above for the bags of [first, top).
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
    std::uint32_t stuck_ = 0;
    std::uint32_t together_ = 0;
    std::uint64_t bags_ = 0;
};

}  // namespace numalloc
