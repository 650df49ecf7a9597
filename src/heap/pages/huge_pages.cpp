// Which parts of a node may have huge pages.
//
// The kernel gives a whole huge page to who touches a bag of it, and khugepaged fills one again of which a part went
// back, as long as the mapping is advised to have them. So what went back would come back by itself, and rest for ever:
// 16 MiB of objects, one in each of 128 huge pages, would hold 256.
//
//   a huge page of which a part went back while others use the rest is broken: its stretch is advised against
//   huge pages. Whole ones stay what they are, until they go back.
//   a stretch that is free whole may have huge pages again, when a part of it is taken; the last one of the heap, when
//   it is mapped anew.
//
// By stretches, because each change of advice may cost one more of the 65,530 mappings that a process may have.
// BagMark::normal says which are advised against; the advice follows outside of the lock, and may be late.
#include "heap/pages/page_heap.h"
#include "os/clock.h"

namespace numalloc {

namespace {

constexpr std::uint32_t stretch_bags = bags_in(policy::huge_stretch);

}  // namespace

BagIndex PageHeap::aligned_down(BagIndex b, std::uint32_t alignment) const {
    const BagIndex next = free_.aligned(b, alignment);
    return next == b ? b : next - alignment;
}

// Of what is mapped and may be huge at all. Not of others' mappings, as far as they are known: their advice is theirs.
PageHeap::Range PageHeap::stretch_of(BagIndex b) const {
    const std::uint64_t end = min_of<std::uint64_t>(free_.aligned(b + 1, stretch_bags).value, region_.committed());
    Range stretch{max_of(aligned_down(b, stretch_bags), region_.huge_from()), BagIndex{end}};
    for (std::uint32_t i = 0, n = gaps_.load(std::memory_order_relaxed); i < n; ++i) {
        if (gap_[i].end <= b) stretch.first = max_of(stretch.first, gap_[i].end);
        else stretch.end = min_of(stretch.end, gap_[i].first);
    }
    return stretch;
}

// The range begins or ends in huge pages that others have parts of.
void PageHeap::break_huge_pages(const Purging& range) {
    if (range.breaks_first) no_more_huge(range.first);
    if (range.breaks_last) no_more_huge(range.first + (range.bags - 1));
}

void PageHeap::no_more_huge(BagIndex b) {
    if (region_.count(BagMark::normal, b, 1) != 0) return;
    Range stretch;
    {
        os::Guard guard(lock_);
        stretch = stretch_of(b);
        set(BagMark::normal, stretch.first, stretch.end - stretch.first, true);
    }
    region_.advise(stretch.first, stretch.end - stretch.first, os::HugePages::off);
}

// Stretches within the free run that bags of it are in which are about to be taken; empty where there is nothing to advise.
PageHeap::Range PageHeap::whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) {
    const BagIndex end = first + bags;
    if (!may_be_huge(end - 1)) return {};
    const BagIndex run_end = run + free_.length(run);
    const BagIndex from = run <= region_.huge_from() && first < free_.aligned(region_.huge_from(), stretch_bags)
                              ? region_.huge_from()
                              : max_of(free_.aligned(run, stretch_bags), aligned_down(first, stretch_bags));
    const BagIndex to = min_of(aligned_down(run_end, stretch_bags), free_.aligned(end, stretch_bags));
    if (from >= to || region_.count(BagMark::normal, from, to - from) == 0) return {};
    set(BagMark::normal, from, to - from, false);
    return {from, to};
}

void PageHeap::huge_again(Range range) {
    if (range.first < range.end) region_.advise(range.first, range.end - range.first, os::HugePages::on);
}

void PageHeap::settle(BagIndex first, std::uint32_t bags) {
    region_.settle(first, bags);
    os::Guard guard(lock_);
    set(BagMark::normal, first, bags, false);
}

// Of the run's first or last huge page what is free, if others use the rest; empty if not.
PageHeap::Range PageHeap::shared_huge_page(BagIndex run, bool at_end) const {
    const BagIndex end = run + free_.length(run);
    const BagIndex from = max_of(run, region_.huge_from());
    if (from >= end || (at_end && end == top_)) return {};
    // Where pages are longer than bags, others may have a part of the page, too.
    const Range part = at_end ? Range{max_of(page_end(from), aligned_down(end, huge_bags)), page_start(end)}
                              : Range{page_end(from), min_of(free_.aligned(from, huge_bags), page_start(end))};
    return part.first < part.end ? part : Range{};
}

// The clean bags at the ends of free runs may be resident with the bags beside them that others use. Two short system
// calls a free run: for who gives back everything.
void PageHeap::purge_beside_used() {
    for (BagIndex run = region_.first_bag();;) {
        BagIndex next;
        for (const bool at_end : {false, true}) {
            Purging range;
            {
                os::Guard guard(lock_);
                if (!at_end) run = free_.next_run(run);
                if (run == none) return;
                // Somebody may have taken it between the two ends.
                if (at_end && !free_.begins_at(run, top_)) break;
                next = run + free_.length(run);
                const Range part = shared_huge_page(run, at_end);
                if (part.first == part.end) continue;
                BagIndex near = at_end ? free_.last_piece(run) : run;
                while (near > part.first) near = free_.piece_before(near);
                range = cut_range(run, part, near);
            }
            const Discarded how = discard(range);
            os::Guard guard(lock_);
            finish(range, how, os::milliseconds());
            if (how == Discarded::refused) return;
        }
        run = next;
    }
}

}  // namespace numalloc
