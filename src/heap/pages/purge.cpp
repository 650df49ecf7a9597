// Free memory goes back to the system: what has rested for purge_delay, and what exceeds the limit
// (dirty_limit.h says how much that is, and why). The kernel works without the heap's lock.
#include "heap/pages/page_heap.h"
#include "os/clock.h"

namespace numalloc {

namespace {

// What exceeds the limit goes back so many bags at a time: 1 MiB a system call, and no more than that is
// given up of what the limit allows.
constexpr std::uint32_t purged_at_once = 32;

}  // namespace

// Gives dirty bags of a free run back: all, or all but the younger, which begin to rest anew.
// How many went, as the next two say: others may free, and purge, while the lock is dropped.
std::uint32_t PageHeap::purge_run(std::uint32_t run, Younger younger) {
    remove_free(run);
    bag(run).state = BagState::small;
    return purge_owned(run, bag(run).run, younger);
}

// The same of the end of the oldest run, what would be handed out last: at least `bags` of those that are
// dirty, or all that there are. Huge pages go whole, but at the ends of the run.
std::uint32_t PageHeap::purge_oldest(std::uint32_t bags) {
    const std::uint32_t run = oldest_;
    const std::uint32_t end = run + bag(run).run;
    const bool huge = options_.huge_pages && end > region_.huge_from().value;
    if (huge) bags += huge_bags;
    std::uint32_t cut = end;
    for (std::uint32_t found = 0; found < bags && cut > run;) {
        const std::uint32_t step = min_of(purged_at_once, cut - run);
        cut -= step;
        found += region_.count_dirty(BagIndex{cut}, step);
    }
    cut = page_start(cut);
    if (huge && aligned_in(cut, huge_bags) != cut) cut = aligned_in(cut, huge_bags) - huge_bags;
    if (cut <= run) return purge_run(run, Younger::too);
    const std::uint32_t freed_at = bag(run).extent.freed_at;
    remove_free(run);
    bag(run).state = BagState::inside;
    add_free(run, cut - run, region_.count_dirty(BagIndex{run}, cut - run), freed_at);
    mark(cut, end - cut, BagState::small);
    return purge_owned(cut, end - cut, Younger::too);
}

// Then makes the range free. The lock is dropped while the kernel works; the range is marked as allocated
// so that nobody takes it or coalesces with it.
std::uint32_t PageHeap::purge_owned(std::uint32_t run, std::uint32_t length, Younger younger) {
    const std::uint32_t to = run + length;
    const auto goes = [&](std::uint32_t b) {
        return region_.count_dirty(BagIndex{b}, 1) != 0 && (younger == Younger::too || region_.count(BagMark::younger, BagIndex{b}, 1) == 0);
    };
    std::uint32_t went = 0;
    std::uint32_t stays = 0;
    for (std::uint32_t b = run; b < to;) {
        // A stretch of dirty bags at a time; clean ones in between have no pages, or parts of huge ones.
        const std::uint32_t begin = b;
        std::uint32_t end = b;
        while (end < to && goes(end)) ++end;
        if (end == b) {
            stays += region_.count_dirty(BagIndex{b}, 1);
            ++b;
            continue;
        }
        // Pages that reach beyond the stretch go whole, with what of the run is clean or younger; of those that
        // reach beyond the run others have a part.
        const std::uint32_t pages = page_bags();
        std::uint32_t first = page_start(b);
        if (first < run) first += pages;
        std::uint32_t last = whole_pages(end);
        if (last > to) last -= pages;
        b = max_of(end, last);
        if (first >= last) continue;
        bool lost = false;
        lock_.unlock();
        const bool gone = purge_bags(first, last - first, lost);
        lock_.lock();
        if (lost) return went;  // stays allocated for ever
        // What could not be given back (locked memory, a part of a page) stays dirty in the map but out of the
        // queue: it is asked for again when it is freed again or coalesces.
        if (gone) {
            went += region_.count_dirty(BagIndex{first}, last - first);
            stays -= first < begin ? region_.count_dirty(BagIndex{first}, begin - first) : 0;
            region_.set_dirty(BagIndex{first}, last - first, false);
        }
    }
    use_.purged_bags += went;
    length = trim_purged(run, length);
    if (length > 0) release(run, length, stays);
    return went;
}

// The clock is read each time: while a purge dropped the lock, others may have freed at a later time than
// was read before, which would look like 49 days ago.
bool PageHeap::has_rested(std::uint32_t run) const {
    return os::milliseconds() - bag(run).extent.freed_at >= static_cast<std::uint32_t>(options_.purge_delay);
}

void PageHeap::enforce_limit() {
    if (options_.purge_delay < 0) return;
    if (options_.purge_delay == 0) {
        while (oldest_ != no_bag) purge_run(oldest_, Younger::too);
        return;
    }
    std::uint32_t went = 0;
    while (oldest_ != no_bag && has_rested(oldest_)) went += purge_run(oldest_, Younger::stays);
    limit_.on_late_purge(went);
    const std::uint32_t allowed = limit_.now_allowed(bags_in_use());
    if (dirty_ <= allowed) return;
    went = 0;
    while (oldest_ != no_bag && dirty_ > allowed) {
        const std::uint32_t gone = purge_oldest(dirty_ - allowed + purged_at_once);
        // Refused (locked memory): the run leaves the queue, or it would be asked for without end.
        if (gone == 0 && oldest_ != no_bag) purge_run(oldest_, Younger::too);
        went += gone;
    }
    limit_.on_early_purge(went, os::milliseconds());
}

Bytes PageHeap::purge(bool all) {
    os::Guard guard(lock_);
    std::uint32_t went = 0;
    // Others may free meanwhile; what they add has its own turn.
    for (std::uint64_t left = use_.free_bags; oldest_ != no_bag && left > 0;) {
        if (!all && (options_.purge_delay < 0 || !has_rested(oldest_))) break;
        left -= min_of<std::uint64_t>(left, bag(oldest_).run);
        went += purge_run(oldest_, all ? Younger::too : Younger::stays);
    }
    if (!all) limit_.on_late_purge(went);
    return Bytes{went} << bag_shift;
}

}  // namespace numalloc
