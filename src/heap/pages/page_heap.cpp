#include "heap/pages/page_heap.h"

#include "base/check.h"
#include "heap/pages/stretches.h"
#include "os/clock.h"
#include "os/numa_policy.h"

namespace numalloc {

namespace {

// A node is full, for strict binding, when it has no more than the kernel keeps and this: for what
// waits on the CPUs' own lists and for what others take meanwhile.
constexpr Bytes strict_margin = 16 * MiB;
constexpr std::uint32_t grant_period = 100;  // milliseconds

}  // namespace

void PageHeap::start(const PageHeapOptions& options) {
    options_ = options;
    limit_.start(options.purge_delay);
    if (options.populate) kept_by_kernel_ = os::kept_bytes_of_node(options.os_node);
    if (options.page_owners != 0) pages_ = static_cast<std::uint32_t*>(os::map(align_up(options.page_owners * sizeof *pages_, os::page_size())));
    tree_.attach(&region_.bag(BagIndex{0}));
    top_ = region_.first_bag().value;
}

// Writes the two entries by which a run is known: see bag.h.
void PageHeap::mark(std::uint32_t run, std::uint32_t length, BagState state) {
    bag(run).run = length;
    bag(run).state = state;
    if (length > 1) {
        Bag& last = bag(run + length - 1);
        last.state = BagState::inside;
        last.run = length - 1;
    }
}

std::uint32_t PageHeap::aligned_in(std::uint32_t run, std::uint32_t alignment) const {
    const std::uint64_t first = (region_.start() >> bag_shift) + run;
    return run + static_cast<std::uint32_t>(align_up(first, alignment) - first);
}

void PageHeap::add_free(std::uint32_t run, std::uint32_t length, std::uint32_t dirty, std::uint32_t freed_at) {
    mark(run, length, BagState::free);
    Bag::Extent& e = bag(run).extent;
    e.dirty = dirty;
    e.freed_at = freed_at;
    tree_.insert(run);
    use_.free_bags += length;
    if (dirty == 0) return;
    dirty_ += dirty;
    // The queue is ordered by time. A run that keeps an older time (the rest of a split) goes
    // back to the old end; all others are the newest.
    const bool old = oldest_ != no_bag && static_cast<std::int32_t>(freed_at - bag(oldest_).extent.freed_at) <= 0;
    if (old) {
        e.older = no_bag;
        e.newer = oldest_;
        bag(oldest_).extent.older = run;
        oldest_ = run;
    } else {
        e.newer = no_bag;
        e.older = newest_;
        if (newest_ != no_bag) bag(newest_).extent.newer = run;
        else oldest_ = run;
        newest_ = run;
    }
}

void PageHeap::remove_free(std::uint32_t run) {
    tree_.remove(run);
    const Bag::Extent& e = bag(run).extent;
    use_.free_bags -= bag(run).run;
    if (e.dirty == 0) return;
    dirty_ -= e.dirty;
    if (e.older != no_bag) bag(e.older).extent.newer = e.newer;
    else oldest_ = e.newer;
    if (e.newer != no_bag) bag(e.newer).extent.older = e.older;
    else newest_ = e.older;
}

// Strict binding: no page may be promised that the node does not have, because the kernel would
// answer its first touch with the OOM killer. So the pages are put there now or not at all.
bool PageHeap::back(std::uint32_t run, std::uint32_t bags) {
    if (!options_.populate) return true;
    const Bytes wanted = Bytes{bags - region_.count_dirty(BagIndex{run}, bags)} << bag_shift;
    if (wanted == 0) return true;
    if (!node_has(wanted)) return false;
    std::uint32_t populated = run;
    for_each_stretch(region_, run, run + bags, [&](std::uint32_t b, std::uint32_t end, bool dirty) {
        if (dirty || os::populate(region_.address(BagIndex{b}), Bytes{end - b} << bag_shift)) populated = end;
        return populated == end;
    });
    if (populated == run + bags) return true;
    // What was put there before the memory ran out: nobody would know of it.
    for_each_stretch(region_, run, run + bags, [&](std::uint32_t b, std::uint32_t end, bool dirty) {
        // A page that a neighbour has a part of stays.
        const std::uint32_t first = whole_pages(b);
        const std::uint32_t last = page_start(end);
        if (!dirty && first < last) os::discard(region_.address(BagIndex{first}), Bytes{last - first} << bag_shift);
        return end <= populated;
    });
    return false;
}

// The node's free memory is a text in /sys: read for 8 MiB at a time, half of the margin, so that a
// reading up to 100 ms old still leaves the other half to everybody else.
bool PageHeap::node_has(Bytes bytes) {
    const std::uint32_t now = os::milliseconds();
    if (bytes > granted_ || now - granted_at_ > grant_period) {
        const Bytes free = os::free_bytes_of_node(options_.os_node);
        const Bytes keep = kept_by_kernel_ + strict_margin;
        granted_ = 0;
        if (free < keep || free - keep < bytes) return false;
        granted_ = max_of(bytes, min_of(free - keep, strict_margin / 2));
        granted_at_ = now;
    }
    granted_ -= bytes;
    return true;
}

BagIndex PageHeap::take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved) {
    if (has_whole_pages(state)) {
        bags = whole_pages(bags);
        alignment = max_of(alignment, page_bags());
    }
    os::Guard guard(lock_);
    std::uint32_t run = tree_.find(bags + alignment - 1);
    // Where the first fit would have to be faulted in, memory that was freed last and is still resident
    // serves a big object as well: the resident set does not grow. A small bag would break it up.
    if ((run == no_bag || bag(run).extent.dirty == 0) && newest_ != no_bag && alignment == 1 && state != BagState::small &&
        bag(newest_).run >= bags)
        run = newest_;
    if (run != no_bag) {
        const std::uint32_t found = run;
        const std::uint32_t length = bag(found).run;
        const std::uint32_t freed_at = bag(found).extent.freed_at;
        const bool queued = bag(found).extent.dirty > 0;
        run = aligned_in(found, alignment);
        if (!back(run + moved, bags - moved)) return none;
        remove_free(found);
        bag(found).state = BagState::inside;
        const auto leave = [&](std::uint32_t rest, std::uint32_t n) {
            if (n > 0) add_free(rest, n, queued ? region_.count_dirty(BagIndex{rest}, n) : 0, freed_at);
        };
        leave(found, run - found);
        leave(run + bags, found + length - (run + bags));
    } else {
        run = extend_top(bags, alignment);
        if (run == no_bag) return none;
        if (!back(run + moved, bags - moved)) {
            // It may have begun with a free run that was dirty.
            release(run, bags, region_.count_dirty(BagIndex{run}, bags));
            return none;
        }
    }
    const std::uint32_t run_dirty = region_.count_dirty(BagIndex{run}, bags);
    limit_.on_take(DirtyLimit::kind_of(c, bags), bags, bags - run_dirty, bags_in_use() + bags, os::milliseconds());
    bag(run).class_id = c.value;
    mark(run, bags, state);
    bags_of(state) += bags;
    if (state == BagState::big) {
        ++use_.big_objects;
        set_moved(BagIndex{run}, no_node);
    }
    return BagIndex{run};
}

BagIndex PageHeap::take_small(std::uint32_t bags, ClassId c, std::uint32_t owner) {
    if (pages_ == nullptr) return take(bags, 1, BagState::small, c);
    std::uint32_t& rest = pages_[owner];
    if (rest == 0 || bag(rest).run < bags) {
        if (const BagIndex old = give_rest(owner); old != none) {
            os::Guard guard(lock_);
            give_locked(old.value, Contents::any);
        }
        const BagIndex page = take(huge_bags, huge_bags, BagState::small, c);
        if (page == none) return take(bags, 1, BagState::small, c);
        rest = page.value;
    }
    os::Guard guard(lock_);  // neighbours that become free look at both runs
    const std::uint32_t run = rest;
    const std::uint32_t length = bag(run).run;
    rest = length == bags ? 0 : run + bags;
    if (rest != 0) {
        bag(rest).class_id = c.value;
        mark(rest, length - bags, BagState::small);
    }
    mark(run, bags, BagState::small);
    return BagIndex{run};
}

BagIndex PageHeap::give_rest(std::uint32_t owner) {
    if (pages_ == nullptr || pages_[owner] == 0) return none;
    const BagIndex rest{pages_[owner]};
    pages_[owner] = 0;
    return rest;
}

// Makes an allocated range free, `dirty` bags of it to be purged, and coalesces it. Parts of different
// age stay apart: the run has the time of the oldest, and what is younger is marked. So a
// stream of small frees holds no old neighbour back, nor does an old one take with it what was freed
// just now and is about to be wanted again.
void PageHeap::release(std::uint32_t run, std::uint32_t length, std::uint32_t dirty) {
    std::uint32_t freed_at = os::milliseconds();
    bag(run).state = BagState::inside;
    region_.set(BagMark::younger, BagIndex{run}, length, false);

    const auto absorb = [&](std::uint32_t other) {
        const Bag::Extent& e = bag(other).extent;
        if (e.dirty > 0 && dirty > 0) {
            const auto older_by = static_cast<std::int32_t>(freed_at - e.freed_at);
            if (older_by > together()) region_.set(BagMark::younger, BagIndex{run}, length, true);
            if (-older_by > together()) region_.set(BagMark::younger, BagIndex{other}, bag(other).run, true);
            if (older_by > 0) freed_at = e.freed_at;
        } else if (e.dirty > 0) {
            freed_at = e.freed_at;
        }
        dirty += e.dirty;
        length += bag(other).run;
        run = min_of(run, other);
        remove_free(other);
        bag(other).state = BagState::inside;
    };
    const std::uint32_t right = run + length;
    if (right < top_ && bag(right).state == BagState::free) absorb(right);
    const std::uint32_t left = free_run_before(run);
    if (left != no_bag) absorb(left);
    add_free(run, length, dirty, freed_at);
    if (run + length == top_ && dirty == 0) trim_top(run);
}

std::uint32_t PageHeap::free_run_before(std::uint32_t run) const {
    if (run <= region_.first_bag().value) return no_bag;
    const std::uint32_t left = region_.head_of(BagIndex{run - 1}).value;
    return bag(left).state == BagState::free ? left : no_bag;
}

void PageHeap::give_locked(std::uint32_t run, Contents contents) {
    const std::uint32_t length = bag(run).run;
    bags_of(bag(run).state) -= length;
    limit_.on_give(DirtyLimit::kind_of(ClassId{bag(run).class_id}, length), length, os::milliseconds());
    if (bag(run).state == BagState::big) --use_.big_objects;
    region_.set_dirty(BagIndex{run}, length, contents == Contents::any);
    release(run, length, contents == Contents::any ? length : 0);
}

void PageHeap::give(BagIndex run) {
    os::Guard guard(lock_);
    give_locked(run.value, Contents::any);
    enforce_limit();
}

std::uint32_t PageHeap::big_run(BagIndex b) {
    os::Guard guard(lock_);
    if (b.value < region_.first_bag().value || b.value >= top_) return 0;
    return bag(b.value).state == BagState::big ? bag(b.value).run : 0;
}

bool PageHeap::resize(BagIndex b, std::uint32_t bags) {
    os::Guard guard(lock_);
    const std::uint32_t run = b.value;
    const std::uint32_t length = bag(run).run;
    const BagState state = bag(run).state;
    if (has_whole_pages(state)) bags = whole_pages(bags);
    if (bags <= length) {
        if (bags == length) return true;
        mark(run, bags, state);
        bags_of(state) -= length - bags;
        limit_.on_give(DirtyLimit::kind_of(no_class, length - bags), length - bags, os::milliseconds());
        region_.set_dirty(BagIndex{run + bags}, length - bags, true);
        release(run + bags, length - bags, length - bags);
        enforce_limit();
        return true;
    }
    const std::uint32_t more = bags - length;
    const std::uint32_t right = run + length;
    const bool neighbour = right < top_ && bag(right).state == BagState::free;
    const std::uint32_t available = neighbour ? bag(right).run : 0;
    if (right + available == top_ && available < more) {
        const std::uint32_t got = extend_top(more, 1);
        if (got != right) {
            if (got != no_bag) release(got, more, region_.count_dirty(BagIndex{got}, more));
            return false;
        }
        if (!back(right, more)) {
            release(right, more, region_.count_dirty(BagIndex{right}, more));
            return false;
        }
    } else {
        if (available < more || !back(right, more)) return false;
        const std::uint32_t freed_at = bag(right).extent.freed_at;
        const bool queued = bag(right).extent.dirty > 0;
        remove_free(right);
        bag(right).state = BagState::inside;
        const std::uint32_t rest = right + more;
        if (available > more)
            add_free(rest, available - more, queued ? region_.count_dirty(BagIndex{rest}, available - more) : 0, freed_at);
    }
    // The kind is what it will be freed as.
    limit_.on_take(DirtyLimit::kind_of(no_class, bags), more, more - region_.count_dirty(BagIndex{right}, more),
                   bags_in_use() + more, os::milliseconds());
    mark(run, bags, state);
    bags_of(state) += more;
    return true;
}

PageHeapUse PageHeap::use() {
    os::Guard guard(lock_);
    PageHeapUse u = use_;
    u.dirty_bags = dirty_;
    return u;
}

void PageHeap::validate() {
    if constexpr (checks_enabled) {
        os::Guard guard(lock_);
        std::uint64_t free_runs = 0;
        std::uint64_t free_bags = 0;
        bool last_was_free = false;
        for (std::uint32_t b = region_.first_bag().value; b < top_; b += bag(b).run) {
            const Bag& entry = bag(b);
            NUMALLOC_ASSERT(entry.state != BagState::inside && entry.run > 0);
            if (entry.run > 1) NUMALLOC_ASSERT(bag(b + entry.run - 1).run == entry.run - 1);
            const bool is_free = entry.state == BagState::free;
            NUMALLOC_ASSERT(!(is_free && last_was_free));
            if (is_free) {
                ++free_runs;
                free_bags += entry.run;
            }
            last_was_free = is_free;
        }
        NUMALLOC_ASSERT(free_bags == use_.free_bags);
        NUMALLOC_ASSERT(tree_.validate() == free_runs);
        std::uint32_t queued = 0;
        for (std::uint32_t r = oldest_; r != no_bag; r = bag(r).extent.newer) queued += bag(r).extent.dirty;
        NUMALLOC_ASSERT(queued == dirty_);
    }
}

}  // namespace numalloc
