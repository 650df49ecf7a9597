// incremental_sharing=0, to measure the gain of sharing: each owner (a shard of a class) cuts its bags from huge pages
// that no other owner uses. The rest of such a huge page is a run in use, kept in rests_. A thread that removes it from
// there owns it alone.
#include "heap/pages/page_heap.h"

namespace numalloc {

void PageHeap::start_owning(std::uint32_t owners) {
    if (owners != 0)
        rests_ = static_cast<std::atomic<BagIndex>*>(os::map(align_up(owners * sizeof *rests_, os::page_size())));
}

BagIndex PageHeap::take_owned(std::uint32_t bags, ClassId c, std::uint32_t owner) {
    BagIndex run = rests_[owner].exchange(none, std::memory_order_acq_rel);
    if (run == none || bag(run).run < bags) {
        if (run != none) give(run);
        run = take(huge_bags, huge_bags, BagState::small, c);
        if (run == none) return take(bags, 1, BagState::small, c);
    }
    const std::uint32_t length = bag(run).run;
    if (length == bags) return run;
    const BagIndex rest = run + bags;
    {
        os::Guard guard(lock_);  // freeing a neighbour reads both runs' entries
        bag(rest).class_id = c.value;
        write_used_run(rest, length - bags, BagState::small);
        write_used_run(run, bags, BagState::small);
    }
    // Another thread of the owner may have stored a rest since.
    BagIndex nothing = none;
    if (!rests_[owner].compare_exchange_strong(nothing, rest, std::memory_order_acq_rel)) give(rest);
    return run;
}

void PageHeap::give_rests() {
    for (std::uint32_t i = 0; !shares_huge_pages() && i < options_.page_owners; ++i)
        if (const BagIndex rest = rests_[i].exchange(none, std::memory_order_acq_rel); rest != none) give(rest);
}

}  // namespace numalloc
