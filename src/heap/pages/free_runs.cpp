#include "heap/pages/free_runs.h"

#include "base/check.h"

namespace numalloc {

namespace policy::runs {

// An aligned request tries at most 16 runs that are long enough but may be misaligned, lowest address first. Then it
// takes a run that is longer by the alignment: the bound keeps the search short in a fragmented heap.
constexpr unsigned aligned_tries = 16;

}  // namespace policy::runs

void FreeRuns::start(Region& region, std::uint32_t together) {
    region_ = &region;
    together_ = together;
    tree_.attach(&region.bag(BagIndex{}));
}

BagIndex FreeRuns::aligned(BagIndex b, std::uint32_t alignment) const {
    const std::uint64_t from_zero = (region_->start() >> bag_shift) + b.value;
    return b + (align_up(from_zero, alignment) - from_zero);
}

FreeRuns::Place FreeRuns::find(std::uint32_t bags, std::uint32_t alignment) const {
    BagIndex run = tree_.find(bags);
    for (unsigned i = 0; alignment > 1 && run != no_bag; ++i) {
        if (std::uint64_t{aligned(run, alignment) - run} + bags <= length(run)) break;
        run = tree_.find(i < policy::runs::aligned_tries ? bags : bags + alignment - 1, run + 1);
    }
    return run == no_bag ? Place{} : Place{run, aligned(run, alignment)};
}

BagIndex FreeRuns::run_before(BagIndex b) const {
    if (b <= region_->first_bag()) return no_bag;
    const Bag& last = entry(b - 1);
    const BagIndex run = last.state == BagState::inside ? b - 1 - last.run : b - 1;
    return entry(run).state == BagState::free ? run : no_bag;
}

// A piece's last bag stores the distance to the first, unless the piece is one bag that begins its run.
BagIndex FreeRuns::piece_before(BagIndex end) const {
    const Bag& last = entry(end - 1);
    return last.state == BagState::free ? end - 1 : end - 1 - last.free.left.value;
}

void FreeRuns::write_piece(BagIndex first, std::uint32_t bags, Piece kind, std::uint32_t since) {
    Bag::Free& p = entry(first).free;
    p.length = bags & ((1U << 30) - 1);
    p.kind = kind;
    p.since = since;
    mark_last(first);
}

void FreeRuns::mark_last(BagIndex piece) {
    const std::uint32_t length = entry(piece).free.length;
    Bag& last = entry(piece + (length - 1));
    if (last.state != BagState::free) last.free.left = BagIndex{length - 1};
}

// Marks the run's first and last bag and inserts it into the tree. Its pieces must be written already.
void FreeRuns::write_run(BagIndex first, std::uint32_t bags) {
    Bag& head = entry(first);
    head.run = bags;
    head.state = BagState::free;
    if (bags > 1) {
        Bag& last = entry(first + (bags - 1));
        last.state = BagState::inside;
        last.run = bags - 1;
    }
    tree_.insert(first);
    bags_ += bags;
}

// The queue of dirty pieces.

void FreeRuns::enqueue(BagIndex piece) {
    Bag::Free& p = entry(piece).free;
    dirty_ += p.length;
    p.newer = no_bag;
    p.older = newest_;
    (newest_ != no_bag ? entry(newest_).free.newer : oldest_) = piece;
    newest_ = piece;
}

void FreeRuns::dequeue(BagIndex piece) {
    const Bag::Free& p = entry(piece).free;
    dirty_ -= p.length;
    (p.older != no_bag ? entry(p.older).free.newer : oldest_) = p.newer;
    (p.newer != no_bag ? entry(p.newer).free.older : newest_) = p.older;
}

// Makes the neighbours in the queue link to the piece.
void FreeRuns::join_links(BagIndex piece) {
    const Bag::Free& p = entry(piece).free;
    (p.older != no_bag ? entry(p.older).free.newer : oldest_) = piece;
    (p.newer != no_bag ? entry(p.newer).free.older : newest_) = piece;
}

// Gives the piece another piece's age and place in the queue. The caller updates lengths and counts.
void FreeRuns::stand_in(BagIndex piece, BagIndex for_piece) {
    Bag::Free& p = entry(piece).free;
    const Bag::Free& other = entry(for_piece).free;
    p.older = other.older;
    p.newer = other.newer;
    p.since = other.since;
    join_links(piece);
}

void FreeRuns::set_stuck(BagIndex piece) {
    dequeue(piece);
    entry(piece).free.kind = Piece::stuck;
    stuck_ += entry(piece).free.length;
}

void FreeRuns::retry_stuck(BagIndex run, std::uint32_t since) {
    const BagIndex end = run + length(run);
    for (BagIndex p = run; p < end; p = p + entry(p).free.length) {
        Bag::Free& stuck = entry(p).free;
        if (stuck.kind != Piece::stuck) continue;
        stuck_ -= stuck.length;
        stuck.kind = Piece::dirty;
        stuck.since = since;
        enqueue(p);
    }
}

// Pieces.

// Pieces that the kernel refused merge with dirty neighbours and are purged together with them.
bool FreeRuns::are_one(const Bag::Free& a, const Bag::Free& b) const {
    if (a.kind != b.kind) return a.kind != Piece::clean && b.kind != Piece::clean;
    if (a.kind != Piece::dirty) return true;
    return min_of(a.since - b.since, b.since - a.since) <= together_;
}

// Merges two adjacent pieces if they count as one. The result has the older age and its place in the queue.
void FreeRuns::join(BagIndex left, BagIndex right) {
    Bag::Free& a = entry(left).free;
    const Bag::Free& b = entry(right).free;
    if (!are_one(a, b)) return;
    if (a.kind == Piece::dirty && b.kind == Piece::dirty) {
        const bool right_is_older = static_cast<std::int32_t>(a.since - b.since) > 0;
        if (right_is_older) {
            dequeue(left);
            stand_in(left, right);
        } else {
            dequeue(right);
            dirty_ += b.length;
        }
        dirty_ += right_is_older ? a.length : 0;
    } else if (a.kind == Piece::dirty) {
        dirty_ += b.length;
        stuck_ -= b.length;
    } else if (b.kind == Piece::dirty) {
        stand_in(left, right);
        a.kind = Piece::dirty;
        dirty_ += a.length;
        stuck_ -= a.length;
    }
    a.length = (a.length + b.length) & ((1U << 30) - 1);
    mark_last(left);
}

// Makes the part from `at` on a piece of its own, the next one in the queue.
void FreeRuns::split(BagIndex piece, BagIndex at) {
    Bag::Free& p = entry(piece).free;
    Bag::Free& rest = entry(at).free;
    const std::uint32_t length = p.length;
    p.length = (at - piece) & ((1U << 30) - 1);
    mark_last(piece);
    if (p.kind == Piece::dirty) {
        rest.older = piece;
        rest.newer = p.newer;
        join_links(at);
    }
    write_piece(at, length - p.length, p.kind, p.since);
}

// Runs.

void FreeRuns::add(BagIndex first, std::uint32_t bags, Piece kind, std::uint32_t since, BagIndex top) {
    NUMALLOC_ASSERT(entry(first).state == BagState::inside);
    write_piece(first, bags, kind, since);
    if (kind == Piece::dirty) enqueue(first);
    if (kind == Piece::stuck) stuck_ += bags;
    BagIndex run = first;
    std::uint32_t length = bags;
    if (const BagIndex right = first + bags; begins_at(right, top)) {
        length += take_out(right);
        join(first, right);
    }
    if (const BagIndex left = run_before(first); left != no_bag) {
        const BagIndex last = piece_before(first);
        length += take_out(left);
        run = left;
        join(last, first);
    }
    write_run(run, length);
}

// Removes a whole run from the tree and leaves its pieces. Returns its length in bags.
std::uint32_t FreeRuns::take_out(BagIndex run) {
    tree_.remove(run);
    Bag& head = entry(run);
    bags_ -= head.run;
    head.state = BagState::inside;
    mark_last(run);
    return head.run;
}

std::uint32_t FreeRuns::cut(BagIndex run, BagIndex first, std::uint32_t bags, BagIndex near) {
    const std::uint32_t length = take_out(run);
    const BagIndex end = first + bags;
    NUMALLOC_ASSERT(run <= near && near <= first && end <= run + length);
    BagIndex piece = near;
    while (piece + entry(piece).free.length <= first) piece = piece + entry(piece).free.length;
    if (piece < first) split(piece, first);
    std::uint32_t dirty = 0;
    for (BagIndex p = first; p < end;) {
        if (p + entry(p).free.length > end) split(p, end);
        const std::uint32_t n = entry(p).free.length;
        const bool clean = entry(p).free.kind == Piece::clean;
        if (entry(p).free.kind == Piece::dirty) dequeue(p);
        if (entry(p).free.kind == Piece::stuck) stuck_ -= n;
        region_->set(BagMark::dirty, p, n, !clean);
        dirty += clean ? 0 : n;
        p = p + n;
    }
    if (run < first) write_run(run, first - run);
    if (end < run + length) write_run(end, run + length - end);
    return dirty;
}

void FreeRuns::validate(BagIndex first, BagIndex top) const {
    if constexpr (checks_enabled) {
        std::uint32_t runs = 0;
        std::uint64_t bags = 0;
        std::uint32_t dirty = 0, stuck = 0;
        bool last_was_free = false;
        for (BagIndex b = first; b < top; b = b + entry(b).run) {
            const bool is_free = entry(b).state == BagState::free;
            NUMALLOC_ASSERT(!(is_free && last_was_free));
            last_was_free = is_free;
            if (!is_free) continue;
            ++runs;
            bags += entry(b).run;
            const BagIndex end = b + entry(b).run;
            NUMALLOC_ASSERT(run_of(end - 1) == b && run_before(end) == b);
            for (BagIndex p = b; p < end; p = p + entry(p).free.length) {
                NUMALLOC_ASSERT(entry(p).free.length > 0 && p + entry(p).free.length <= end);
                NUMALLOC_ASSERT(piece_before(p + entry(p).free.length) == p);
                dirty += entry(p).free.kind == Piece::dirty ? entry(p).free.length : 0;
                stuck += entry(p).free.kind == Piece::stuck ? entry(p).free.length : 0;
            }
        }
        NUMALLOC_ASSERT(bags == bags_ && dirty == dirty_ && stuck == stuck_ && tree_.validate() == runs);
        std::uint32_t queued = 0;
        BagIndex older = no_bag;
        for (BagIndex p = oldest_; p != no_bag; p = entry(p).free.newer) {
            NUMALLOC_ASSERT(entry(p).free.kind == Piece::dirty && entry(p).free.older == older);
            queued += entry(p).free.length;
            older = p;
        }
        NUMALLOC_ASSERT(queued == dirty_ && newest_ == older);
    }
}

}  // namespace numalloc
