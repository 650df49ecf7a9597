// The bags of one node: runs of them for small bags and for big objects (above 512 KiB), out of
// one set of free runs, so that memory freed by either serves both.
//
//   free_runs.h   which bags are free: found by length and by age
//   page_heap.cpp taking, giving, resizing
//   top.cpp       the end of what is mapped: growing, stepping over what others mapped, trimming
//   purge.cpp     pages go back to the system, dirty_limit.h says how many
//   move.cpp, clear.cpp   big objects that grow, and calloc's
//   huge_pages.cpp   which parts may have huge pages
//   own_pages.cpp what incremental_sharing=0 does instead of sharing huge pages
//
// Taking and giving cost O(log n) of n free runs, whatever their length and age; a freed run coalesces with its free
// neighbours at once. What was never used lies above `top_` (the paper's bump pointers); it and what went back to the
// OS is known to be zero, bag by bag, so that calloc need not clear it again.
//
// Where a page holds several bags (64 KiB on some aarch64 kernels), the runs of big objects are whole pages, so that
// they can be bound, moved and given back by themselves; of small bags' runs go back the pages that are free whole.
//
// Thread-safe. lock_ guards the free runs; no system call is made under it. growth_lock_ guards the end of what is
// mapped: only who needs more than that waits for it, as it would in the kernel; and, under strict binding, the pages
// that a node has left, which are promised to one at a time. It is taken before lock_.
#pragma once

#include <atomic>

#include "base/experiments.h"
#include "heap/pages/dirty_limit.h"
#include "heap/pages/free_runs.h"
#include "heap/space/region.h"
#include "os/lock.h"

namespace numalloc {

struct PageHeapOptions {
    std::int32_t purge_delay = 1000;  // milliseconds; 0 at once, -1 never
    bool huge_pages = false;          // bags may be huge pages: as few as can be are broken up
    bool (*touch_is_dear)(void* huge_page,
                          Bytes own) = nullptr;  // os/huge_page_cost.h; nullptr: huge pages are never dear
    bool populate = false;                       // put pages behind bags before they are handed out
    std::uint16_t os_node = 0;                   // whose memory must suffice for that
    std::uint32_t page_owners = 0;               // who has huge pages of its own (an experiment): see take_small()
    std::uint32_t most_moved = policy::most_moved_mappings;  // mappings that moved blocks may lie in
};

struct PageHeapUse {
    std::uint64_t big_bags;    // in big objects
    std::uint64_t small_bags;  // in small bags
    std::uint64_t bound_bags;  // in bound heaps
    std::uint64_t free_bags;   // free below the top
    std::uint64_t dirty_bags;  // of these, resident
    std::uint64_t big_objects;
    std::uint64_t purged_bags;     // given back to the OS since start
    Bytes returned_bytes;          // the same of pages of bags in use
    std::uint64_t regretted_bags;  // of these, what made more be kept
    std::uint64_t big_taken;       // big objects since start
};

class PageHeap {
public:
    Region& region() { return region_; }
    const Region& region() const { return region_; }

    // After region().open(). Called once, before any other.
    void start(const PageHeapOptions& options) NUMALLOC_EXCLUDES(lock_);

    // A run of `bags` bags whose first is a multiple of `alignment` bags (a power of two) from
    // address 0. `none` when the node has no room. What of it the region does not mark as dirty is zero;
    // the marks stand until it is given. `c`: the class of the objects that it is for.
    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c = no_class)
        NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        return take(bags, alignment, state, c, 0);
    }
    // A place for move(): the first `moved` bags will have the pages of another run.
    BagIndex take_to_move(std::uint32_t bags, std::uint32_t alignment, std::uint32_t moved)
        NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        return take(bags, alignment, BagState::big, no_class, moved);
    }
    static constexpr BagIndex none = no_bag;

    // The same for bags of objects. With page_owners they are cut from a huge page that only `owner` has.
    BagIndex take_small(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        if constexpr (experiments)
            if (!shares_huge_pages()) return take_owned(bags, c, owner);
        return take(bags, 1, BagState::small, c);
    }
    // The same, of what all share, if it takes no call of the kernel; for callers that hold a lock. `none` says little.
    BagIndex take_small_at_once(std::uint32_t bags, ClassId c) NUMALLOC_EXCLUDES(lock_);
    // For such bags, once no lock is held: times the first touch of a huge page. The first `own` bytes are the
    // caller's.
    void sample_cost_of_small(BagIndex run, std::uint32_t bags, Bytes own) NUMALLOC_EXCLUDES(lock_);
    bool shares_huge_pages() const { return !experiments || rests_ == nullptr; }
    // What is left of owners' huge pages becomes free. With experiments only, as are the two that own_pages.cpp has
    // beside it.
    void give_rests() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Bags of a big object's run: `bags` rounded up to whole pages.
    static std::uint32_t whole_pages(std::uint32_t bags) { return (bags + page_bags() - 1) & ~(page_bags() - 1); }

    // A run that take() returned. Gives back to the OS what is due, in proportion to what is given.
    void give(BagIndex run) NUMALLOC_EXCLUDES(growth_lock_, lock_) { give(run, Contents::any); }

    // Makes the first bytes of a run zero that was just taken: writes only where it may not be.
    void clear(BagIndex run, Bytes bytes);

    // The first `bags` bags of big object `from` become those of big object `to`, and `from` is
    // given: by moving pages where the kernel can, else by copying. false: both are allocated
    // still, and `from` is as it was, but what was `to` no longer exists.
    bool move(BagIndex from, BagIndex to, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    // Mappings that moved blocks lie in.
    std::uint32_t moved_mappings() const { return moved_mappings_.load(std::memory_order_relaxed); }

    // Whether the bag lies in a mapping of others that was stepped over. Of the first few such places; without a lock.
    bool is_of_others(BagIndex b) const {
        for (std::uint32_t i = 0, n = gaps_.load(std::memory_order_acquire); i < n; ++i)
            if (b >= gap_[i].first && b < gap_[i].end) return true;
        return false;
    }

    // Binds and advises bags in use as the region's are: their mapping was changed.
    void settle(BagIndex first, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    // Returns pages of a bag in use to the OS; they read as zero afterwards. false if the OS refuses: then some may
    // have gone. Not under strict binding, which keeps a page behind every address that it handed out.
    bool return_pages(void* p, Bytes bytes) NUMALLOC_EXCLUDES(lock_);

    bool returns_pages() const { return !options_.populate; }
    // Whether the bag may lie on a huge page, which is no longer one then.
    bool breaks_huge_page(BagIndex b) const { return may_be_huge(b) && region_.count(BagMark::normal, b, 1) == 0; }

    // How long free memory may rest from now on: PageHeapOptions::purge_delay.
    void set_purge_delay(std::int32_t delay) NUMALLOC_EXCLUDES(lock_);

    // How many threads it serves now, which says how much is kept for them.
    void set_threads(std::uint32_t threads) { threads_.store(threads, std::memory_order_relaxed); }

    // How long the big object is that begins at the bag; 0 when none does. Without a lock: exact for an object that
    // nobody else frees, safe for any bag of the region.
    std::uint32_t big_run(BagIndex b) const;

    // Where the pages of a big object were moved, if not to its own node. For its owner.
    NodeId moved_to(BagIndex run) const { return NodeId{bag(run).taken - 1U}; }
    void set_moved(BagIndex run, NodeId node) { bag(run).taken = static_cast<std::uint16_t>(node.value + 1U); }

    // Stands for several nodes in the two above: the kernel knows which.
    static constexpr NodeId spread_over{0xFFFD};

    // Makes a big object's run shorter or, where its neighbour is free, longer. false leaves it alone.
    bool resize(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Gives back to the OS what is due, a bounded part of it; everything that is free when `all`. The bytes.
    Bytes purge(bool all) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    PageHeapUse use() NUMALLOC_EXCLUDES(lock_);
    Bytes in_use() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        return Bytes{bags_in_use()} << bag_shift;
    }
    void validate() NUMALLOC_EXCLUDES(lock_);

private:
    enum class Contents { any, zero };
    // A range on its way to the OS: marked as allocated, so that nobody takes it or coalesces with it.
    struct Purging {
        BagIndex first;
        std::uint32_t bags = 0;
        std::uint32_t dirty = 0;  // of these, what counts
        bool rested = false;      // for purge_delay; otherwise beyond the limit
        // Of the huge page that it begins or ends in, others use the rest.
        bool breaks_first = false, breaks_last = false;
    };
    struct Range {
        BagIndex first{}, end{};
    };
    // What the kernel was asked of a range.
    enum class Discarded { done, refused, lost };

    static constexpr std::uint32_t huge_bags = static_cast<std::uint32_t>(os::huge_page / bag_bytes);
    static std::uint32_t page_bags() {
        return static_cast<std::uint32_t>(max_of(os::page_size(), bag_bytes) / bag_bytes);
    }
    // The bag that the page of bag b begins with, and the next one that begins a page: regions begin with a page.
    static BagIndex page_start(BagIndex b) { return BagIndex{b.value & ~(page_bags() - 1)}; }
    static BagIndex page_end(BagIndex b) { return BagIndex{whole_pages(b.value)}; }
    static bool has_whole_pages(BagState state) { return state == BagState::big || state == BagState::bound_big; }

    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved)
        NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_mapped(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Range* huge)
        NUMALLOC_EXCLUDES(lock_);
    void start_owning(std::uint32_t owners);
    BagIndex take_owned(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_free(std::uint32_t bags, std::uint32_t alignment, BagState state, Range* huge)
        NUMALLOC_REQUIRES(lock_);
    bool lengthen(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    void use_new(BagIndex first, std::uint32_t bags, BagState state, unsigned kind) NUMALLOC_REQUIRES(lock_);
    void not_used(BagIndex first, std::uint32_t bags, BagState state) NUMALLOC_REQUIRES(lock_);
    void give(BagIndex run, Contents contents) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    void make_free(BagIndex first, std::uint32_t bags, unsigned kind, Contents contents, std::uint32_t now)
        NUMALLOC_REQUIRES(lock_);
    void mark(BagIndex run, std::uint32_t length, BagState state) NUMALLOC_REQUIRES(lock_);
    void set(BagMark mark, BagIndex b, std::uint32_t bags, bool on) NUMALLOC_REQUIRES(lock_) {
        region_.set(mark, b, bags, on);
    }

    BagIndex at_top(std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    BagIndex extend_top(std::uint32_t bags, std::uint32_t alignment) NUMALLOC_REQUIRES(lock_);
    void move_top(BagIndex to) NUMALLOC_REQUIRES(lock_);
    void free_top_page() NUMALLOC_REQUIRES(lock_);
    bool grow(std::uint32_t bags, std::uint32_t alignment, BagIndex at) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    bool grow_over(std::uint64_t bags) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
    bool top_is_clean() const NUMALLOC_REQUIRES(lock_);
    void trim_top() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    bool back(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    bool node_has(Bytes bytes) NUMALLOC_REQUIRES(growth_lock_);

    // Milliseconds within which two pieces count as freed together.
    std::uint32_t together() const {
        return static_cast<std::uint32_t>(max_of(options_.purge_delay, 0) / policy::together_part);
    }
    bool has_rested(BagIndex piece, std::uint32_t now) const NUMALLOC_REQUIRES(lock_);
    static std::uint32_t most_purged(std::uint32_t freed);
    Purging pick(std::uint32_t most, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    bool may_be_huge(BagIndex b) const { return options_.huge_pages && b >= region_.huge_from(); }
    BagIndex aligned_down(BagIndex b, std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    Range stretch_of(BagIndex b) const NUMALLOC_REQUIRES(lock_);
    Range whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    void break_huge_pages(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    Range shared_huge_page(BagIndex run, bool at_end) const NUMALLOC_REQUIRES(lock_);
    void purge_beside_used() NUMALLOC_EXCLUDES(lock_);
    void no_more_huge(BagIndex b) NUMALLOC_EXCLUDES(lock_);
    void huge_again(Range range) NUMALLOC_EXCLUDES(lock_);
    bool were_dear() const;
    bool leave_normal(BagIndex from, BagIndex to);
    Range count_untouched(BagIndex run, std::uint32_t bags);
    void sample_cost(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);
    bool takes_sample();
    bool note_sample(BagIndex b, bool dear) NUMALLOC_EXCLUDES(lock_);
    Purging cut_range(BagIndex run, Range part, BagIndex near) NUMALLOC_REQUIRES(lock_);
    Purging cut_end(BagIndex piece, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    Discarded discard(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    void finish(const Purging& range, Discarded how, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    std::uint32_t purge_due(Purging range, std::uint32_t most) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    bool copy(BagIndex from, BagIndex to, Bytes done, Bytes bytes);
    Bytes move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last) NUMALLOC_EXCLUDES(lock_);
    void note_mapping(BagIndex b, std::uint32_t bags, bool moved) NUMALLOC_EXCLUDES(lock_);

    std::uint64_t& bags_of(BagState state) NUMALLOC_REQUIRES(lock_) {
        return state == BagState::big ? use_.big_bags : state == BagState::small ? use_.small_bags : use_.bound_bags;
    }
    std::uint64_t bags_in_use() const NUMALLOC_REQUIRES(lock_) {
        return use_.big_bags + use_.small_bags + use_.bound_bags;
    }
    Bag& bag(BagIndex b) const { return region_.bag(b); }

    // Read without a lock: constant, or written under lock_. What the region has of bags is under lock_ too, while they
    // are free; of bags in use it is their owner's.
    Region region_;
    PageHeapOptions options_;
    std::atomic<BagIndex>* rests_ = nullptr;  // of each owner's huge page, a run, or none. nullptr: all share
    std::atomic<std::uint32_t> moved_mappings_{0};
    std::atomic<std::uint32_t> untouched_{policy::huge_pages_a_sample};  // huge pages that were taken untouched
    std::atomic<std::uint32_t> sampled_at_{
        0};  // its value at the last sample; 16 less where the next one is to be a sample, too
    std::atomic<std::uint32_t> dear_in_row_{0};  // dear samples since the last one that was not
    std::atomic<std::uint32_t> dear_until_{0};   // milliseconds, or 0: there were never policy::dear_in_a_row of them
    static constexpr std::uint32_t most_gaps = 16;
    struct Gap {
        BagIndex first, end;
    };
    Gap gap_[most_gaps];
    std::atomic<std::uint32_t> gaps_{0};

    alignas(64) os::Lock<os::LockRank::growth> growth_lock_;
    Bytes kept_by_kernel_ = 0;                             // of the node's free memory, for strict binding; constant
    Bytes granted_ NUMALLOC_GUARDED_BY(growth_lock_) = 0;  // of it, still ours to populate by the last reading
    std::uint32_t granted_at_ NUMALLOC_GUARDED_BY(growth_lock_) = 0;  // milliseconds

    alignas(64) os::Lock<os::LockRank::pages> lock_;
    std::atomic<std::uint32_t> threads_{1};  // read and written without it
    std::uint32_t refused_at_ NUMALLOC_GUARDED_BY(lock_) =
        0;  // milliseconds: when the kernel would not take pages back
    bool refused_ NUMALLOC_GUARDED_BY(lock_) = false;
    BagIndex top_ NUMALLOC_GUARDED_BY(lock_);
    FreeRuns free_ NUMALLOC_GUARDED_BY(lock_);
    PageHeapUse use_ NUMALLOC_GUARDED_BY(lock_){};
    DirtyLimit limit_ NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
