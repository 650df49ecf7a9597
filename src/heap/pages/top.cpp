#include "heap/pages/top.h"

#include "base/tracepoints.h"

namespace numalloc {

namespace policy::mapping {

// A clean end of the heap shorter than 2 MiB stays mapped: it costs only addresses.
constexpr Bytes trimmed_from = 2 * MiB;

}  // namespace policy::mapping

void Top::move_top(BagIndex to) {
    set(BagMark::dirty, top_, to - top_, false);
    top_ = to;
    highest_top_ = max_of(highest_top_, to);
}

void Top::free_top_page() {
    const BagIndex from = top_;
    BagIndex to = page_end(from);
    if (options_.huge_pages && from > region_.huge_from())
        to = BagIndex{min_of<std::uint64_t>(free_.aligned(from, huge_bags).value, region_.committed())};
    if (to <= from) return;
    move_top(to);
    bag(from).state = BagState::inside;
    free_.add(from, to - from, Bag::Piece::clean, 0, top_);
}

// Where a request that reaches beyond the top would begin: in the free run that ends at the top, if there is one.
BagIndex Top::at_top(std::uint32_t alignment) const {
    const BagIndex tail = free_.run_before(top_);
    return free_.aligned(tail != none ? tail : top_, alignment);
}

BagIndex Top::extend_top(std::uint32_t bags, std::uint32_t alignment) {
    const BagIndex old_top = top_;
    const BagIndex run = at_top(alignment);
    const BagIndex end = run + bags;
    if (end.value > region_.committed()) return none;
    // The free run may suffice: the tree can overlook a long enough run of 256 GiB or more.
    if (run < old_top) free_.cut({free_.run_before(old_top), run}, min_of(end, old_top) - run);
    if (end > old_top) move_top(end);
    if (run > old_top) {
        bag(old_top).state = BagState::inside;
        free_.add(old_top, run - old_top, Bag::Piece::clean, 0, top_);
    }
    return run;
}

// Marks newly mapped bags and makes them usable. For what needs evidence, bags that were used before keep their marks;
// for others that is forgotten.
void Top::use_mapped(BagIndex to, bool on_evidence) {
    const BagIndex from{region_.committed()};
    const bool normal = leave_normal(from, to);
    BagIndex known = from;
    if (on_evidence && !normal) {
        {
            os::Guard guard(lock_);
            known = min_of(max_of(from, highest_top_), to);
            if (advice_changes_ + region_.changes(BagMark::normal, from, known) > options_.most_advice_changes)
                known = from;
        }
        advise_as_marked({from, known}, true);
    }
    os::Guard guard(lock_);
    trace::map(region_.address(from), Bytes{to - from} << bag_shift);
    set_normal({known, to}, normal);
    set_committed(to.value);
    if (!on_evidence) highest_top_ = min_of(highest_top_, from);
}

bool Top::grow(std::uint32_t bags, std::uint32_t alignment, BagIndex at, bool on_evidence) {
    os::Guard growing(growth_lock_);
    std::uint64_t up_to;
    {
        os::Guard guard(lock_);
        if (at == none && free_.find(bags, alignment).run != none) return true;
        const BagIndex first = at != none ? at : at_top(alignment);
        up_to = std::uint64_t{first.value} + bags;
        if (up_to <= region_.committed()) return true;
    }
    if (up_to > region_.end_bag().value) return false;
    if (const std::uint64_t mapped = region_.map_up_to(up_to); mapped != 0) {
        use_mapped(BagIndex{mapped}, on_evidence);
        return true;
    }
    return at == none && grow_over(std::uint64_t{bags} + alignment - 1);
}

// Grows behind a mapping of others that is in the way. The bags that it covers stay allocated forever.
bool Top::grow_over(std::uint64_t bags) {
    const Region::Stretch beyond = region_.map_beyond(bags);
    if (beyond.first == beyond.end) return false;
    os::Guard guard(lock_);
    const BagIndex old_top = top_;
    const BagIndex old_end{region_.committed()};
    top_ = BagIndex{beyond.first};
    highest_top_ = max_of(highest_top_, top_);
    set_normal({top_, BagIndex{beyond.end}}, false);
    set_committed(beyond.end);
    write_used_run(old_end, top_ - old_end, BagState::small);
    foreign_.add({old_end, top_});
    if (old_end > old_top) {
        bag(old_top).state = BagState::inside;
        free_.add(old_top, old_end - old_top, Bag::Piece::clean, 0, top_);
    }
    return true;
}

// Takes no lock: other threads that the child may have, started by fork handlers, wait until the fork is over.
void Top::unbind() { unbind({region_.first_bag(), BagIndex{region_.committed()}}); }

void Top::unbind(BagRange bags) {
    foreign_.each_part_of_ours(bags, [&](BagRange part) { region_.unbind(part); });
}

void Top::unbind_run(BagIndex run) {
    const BagIndex end = run + bag(run).run;
    if (end <= region_.bound_from()) return;
    os::Guard growing(growth_lock_);
    const BagIndex from = region_.bound_from();
    if (from != BagIndex{} && from < end) unbind({from, end});
}

void Top::bind_again() {
    os::Guard growing(growth_lock_);
    const BagIndex from = region_.bound_from();
    if (from == BagIndex{}) return;
    // First, so that what another thread maps anew meanwhile is bound.
    region_.set_bound_from(BagIndex{});
    bool bound = true;
    foreign_.each_part_of_ours({region_.first_bag(), BagIndex{region_.committed()}},
                               [&](BagRange part) { bound = region_.bind_again(part) && bound; });
    if (!bound) region_.set_bound_from(from);
}

bool Top::top_is_clean() const {
    const BagIndex run = free_.run_before(top_);
    if (run == none) return false;
    const Bag::Free& last = free_.piece(free_.last_piece(run));
    return last.kind == Bag::Piece::clean && last.length >= bags_in(policy::mapping::trimmed_from);
}

void Top::trim_top() {
    if (!growth_lock_.try_lock()) return;  // its holder needs more memory
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    {
        os::Guard guard(lock_);
        if (top_is_clean()) {
            const BagIndex run = free_.run_before(top_);
            const BagIndex piece = free_.last_piece(run);
            from = region_.trimmed(piece.value);
            if (from < top_.value) {
                const BagIndex end{from};
                free_.cut(run, end, top_ - end, piece);
                bag(end).state = BagState::inside;
                to = region_.committed();
                top_ = end;
                set_committed(from);
            }
        }
    }
    if (to != 0) {
        const std::uint64_t end = region_.unmap(from, to);
        os::Guard guard(lock_);
        set_committed(end);
    }
    growth_lock_.unlock();
}

}  // namespace numalloc
