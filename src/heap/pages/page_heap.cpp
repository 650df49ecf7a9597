#include "heap/pages/page_heap.h"

#include "base/check.h"
#include "base/tracepoints.h"
#include "heap/pages/growth.h"
#include "heap/pages/stretches.h"
#include "os/brief_wait.h"
#include "os/clock.h"

namespace numalloc {

constinit Growth growth;

void PageHeap::start(const PageHeapOptions& options) {
    options_ = options;
    touches_.start(options.touch_is_dear);
    if (options.populate) {
        os::Guard guard(growth_lock_);
        room_.start(options.os_node);
    }
    if constexpr (experiments) start_owning(options.page_owners);
    os::Guard guard(lock_);
    rule_.set_delay(options.purge_delay);
    free_.start(region_, rule_.together());
    top_ = highest_top_ = region_.first_bag();
}

// Strict binding must not promise pages that the node does not have, because the kernel would answer their first touch
// with the OOM killer. So the pages are populated now, or the request fails.
bool PageHeap::back(BagIndex run, std::uint32_t bags) {
    if (!options_.populate) return true;
    const Bytes wanted = Bytes{bags - region_.count_dirty(run, bags)} << bag_shift;
    if (wanted == 0) return true;
    os::Guard promising(growth_lock_);
    if (!room_.grant(wanted)) return false;
    const BagIndex to = run + bags;
    BagIndex populated = run;
    for_each_stretch(region_, run, to, [&](BagIndex b, BagIndex end, bool dirty) {
        if (dirty || os::populate(region_.address(b), Bytes{end - b} << bag_shift)) populated = end;
        return populated == end;
    });
    if (populated == to) return true;
    // Discard the pages populated before the memory ran out: no mark records them.
    for_each_stretch(region_, run, to, [&](BagIndex b, BagIndex end, bool dirty) {
        // A page that a neighbour uses in part stays.
        const BagIndex first = page_end(b);
        const BagIndex last = page_start(end);
        if (!dirty && first < last) os::discard(region_.address(first), Bytes{last - first} << bag_shift);
        return end <= populated;
    });
    return false;
}

// Takes mapped bags. `advice`: receives what the caller must advise; nullptr if it cannot.
BagIndex PageHeap::take_free(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Advice* advice) {
    const FreeRuns::Place place = free_.find(bags, alignment);
    // If the first fit would have to be faulted in, take the memory that was freed last, which is still resident: the
    // resident set does not grow. A small bag would break it up.
    const BagIndex newest = free_.newest();
    const bool resident = place.run != none && free_.piece(place.run).kind != Bag::Piece::clean;
    if (!resident && newest != none && state != BagState::small) {
        const BagIndex first = free_.aligned(newest, alignment);
        if (std::uint64_t{first - newest} + bags <= free_.piece(newest).length) {
            free_.cut(free_.run_of(newest), first, bags, newest);
            return first;
        }
    }
    if (place.run == none) {
        const BagIndex never_used = highest_top_;
        const BagIndex run = extend_top(bags, alignment);
        if (run != none && advice != nullptr && !advice->dense)
            advice->normal = without_evidence(max_of(run, never_used), run + bags, state, c);
        return run;
    }
    if (advice != nullptr && !needs_evidence(state, c)) advice->huge = whole_stretches(place.run, place.first, bags);
    free_.cut(place, bags);
    return place.first;
}

BagIndex PageHeap::take_mapped(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Advice* advice) {
    os::Guard guard(lock_);
    const BagIndex run = take_free(bags, alignment, state, c, advice);
    if (run == none) return none;
    use_new(run, bags, state, DirtyLimit::kind_of(c, bags));
    bag(run).class_id = c.value;
    write_used_run(run, bags, state);
    if (state == BagState::big) {
        ++use_.big_objects;
        ++use_.big_taken;
        set_moved(run, no_node);
        bag(run).big = {};
    }
    return run;
}

BagIndex PageHeap::take_small_at_once(std::uint32_t bags, ClassId c) {
    // What needs evidence may need advice.
    if (options_.populate || !shares_huge_pages() || needs_evidence(BagState::small, c)) return none;
    return take_mapped(bags, 1, BagState::small, c, nullptr);
}

BagIndex PageHeap::take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved,
                        bool dense) {
    if (has_whole_pages(state)) {
        bags = whole_pages(bags);
        alignment = max_of(alignment, page_bags());
    }
    const std::uint64_t end = region_.end_bag().value;
    if (bags > end || alignment > end) return none;
    std::uint32_t sleeps = os::many_sleeps;
    for (;;) {
        Advice advice{.dense = dense};
        const std::uint32_t purged = purged_ranges();
        const BagIndex run = take_mapped(bags, alignment, state, c, &advice);
        if (run == none) {
            // What another thread is returning to the kernel is free again soon.
            if (!grow(bags, alignment, none, needs_evidence(state, c)) && !purged_more_than(purged, sleeps))
                return none;
            continue;
        }
        huge_again(advice.huge);
        advise_as_marked(advice.normal, false);
        if (moved == 0) sample_cost(run, bags);
        if (back(run + moved, bags - moved)) return run;
        os::Guard guard(lock_);
        not_used(run, bags, state);
        return none;
    }
}

// Accounts for bags that were cut out to be used.
void PageHeap::use_new(BagIndex first, std::uint32_t bags, BagState state, unsigned kind) {
    const std::uint32_t clean = bags - region_.count_dirty(first, bags);
    const std::uint32_t regretted = rule_.on_take(kind, bags, clean, bags_in_use() + bags, os::milliseconds());
    if (clean > 0) growth.note(Bytes{clean} << bag_shift);
    if (regretted > 0) trace::regret(Bytes{regretted} << bag_shift);
    use_.regretted_bags += regretted;
    bags_of(state) += bags;
}

// Frees bags that were taken but cannot be handed out; each stays as clean or dirty as it was.
void PageHeap::not_used(BagIndex first, std::uint32_t bags, BagState state) {
    const std::uint32_t now = os::milliseconds();
    bags_of(state) -= bags;
    if (bag(first).state == BagState::big) --use_.big_objects;
    bag(first).state = BagState::inside;
    for_each_stretch(region_, first, first + bags, [&](BagIndex b, BagIndex end, bool dirty) {
        lock_.assert_held();
        free_.add(b, end - b, dirty ? Bag::Piece::dirty : Bag::Piece::clean, now, top_);
        return true;
    });
}

// `kind`: the kind of the run that the bags belonged to (dirty_limit.h). Returns what is to be purged now.
Purger::Purging PageHeap::make_free(BagIndex first, std::uint32_t bags, unsigned kind, Contents contents) {
    const std::uint32_t now = os::milliseconds();
    const bool fresh = bags >= DirtyLimit::long_run && 2 * region_.count_dirty(first, bags) <= bags;
    const bool at_once = rule_.on_give(kind, bags, fresh, now);
    if (at_once && contents == Contents::any) return set_aside(first, bags);
    bag(first).state = BagState::inside;
    free_.add(first, bags, contents == Contents::any ? Bag::Piece::dirty : Bag::Piece::clean, now, top_);
    return pick(PurgeRule::most_after(bags), now);
}

void PageHeap::give(BagIndex run, Contents contents) {
    Purging due;
    std::uint32_t bags;
    bool trim;
    {
        os::Guard guard(lock_);
        bags = bag(run).run;
        bags_of(bag(run).state) -= bags;
        if (bag(run).state == BagState::big) --use_.big_objects;
        due = make_free(run, bags, DirtyLimit::kind_of(ClassId{bag(run).class_id}, bags), contents);
        trim = contents == Contents::zero && top_is_clean();
    }
    if (due.bags > 0) purge_picked(due, PurgeRule::most_after(bags));
    else if (trim) trim_top();
}

std::uint32_t PageHeap::big_run(BagIndex b) const {
    if (b < region_.first_bag() || !region_.is_mapped(b)) return 0;
    return bag(b).state == BagState::big ? bag(b).run : 0;
}

bool PageHeap::resize(BagIndex run, std::uint32_t bags) {
    const std::uint32_t length = bag(run).run;
    const BagState state = bag(run).state;
    if (has_whole_pages(state)) bags = whole_pages(bags);
    if (bags == length) return true;
    if (bags > length) return lengthen(run, bags);
    const std::uint32_t fewer = length - bags;
    Purging due;
    {
        os::Guard guard(lock_);
        write_used_run(run, bags, state);
        bags_of(state) -= fewer;
        due = make_free(run + bags, fewer, DirtyLimit::kind_of(no_class, fewer), Contents::any);
    }
    if (due.bags > 0) purge_picked(due, PurgeRule::most_after(fewer));
    return true;
}

// Grows a run into the free bags behind it or, at the end of the heap, into never-used ones.
bool PageHeap::lengthen(BagIndex run, std::uint32_t bags) {
    const std::uint32_t length = bag(run).run;
    const BagState state = bag(run).state;
    const std::uint32_t more = bags - length;
    const BagIndex right = run + length;
    BagRange normal;
    for (bool grown = false;; grown = true) {
        {
            os::Guard guard(lock_);
            const std::uint32_t available = free_.begins_at(right, top_) ? free_.length(right) : 0;
            const bool at_top = right + available == top_;
            if (available < more && !at_top) return false;
            if (available >= more || (right + more).value <= region_.committed()) {
                if (available > 0) free_.cut({right, right}, min_of(available, more));
                const BagIndex never_used = highest_top_;
                if (available < more) move_top(right + more);
                normal = without_evidence(max_of(right, never_used), right + more, state, no_class);
                // The kind that the run will be freed as.
                use_new(right, more, state, DirtyLimit::kind_of(no_class, bags));
                // Before the lock is released: the entries still say that the bags are free.
                write_used_run(run, bags, state);
                break;
            }
        }
        if (grown || !grow(more, 1, right, needs_evidence(state, no_class))) return false;
    }
    advise_as_marked(normal, false);
    if (back(right, more)) return true;
    os::Guard guard(lock_);
    write_used_run(run, length, state);
    not_used(right, more, state);
    return false;
}

void PageHeap::validate() {
    if constexpr (checks_enabled) {
        os::Guard guard(lock_);
        for (BagIndex b = region_.first_bag(); b < top_; b = b + bag(b).run) {
            const Bag& entry = bag(b);
            NUMALLOC_ASSERT(entry.state != BagState::inside && entry.run > 0);
            if (entry.run > 1) NUMALLOC_ASSERT(bag(b + (entry.run - 1)).run == entry.run - 1);
        }
        free_.validate(region_.first_bag(), top_);
        const BagIndex end{region_.committed()}, from = min_of(region_.first_bag() + 1, end);
        NUMALLOC_ASSERT(advice_changes_ == region_.changes(BagMark::normal, from, end));
    }
}

}  // namespace numalloc
