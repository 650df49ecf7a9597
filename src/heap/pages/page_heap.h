// The bags of one node: runs of bags for small objects and for big objects (above 512 KiB), from one set of free runs,
// so that memory freed by either serves both.
//
//   free_runs.h           which bags are free: found by length and by age
//   page_heap.cpp         allocating, freeing and resizing runs; node_room.h: what strict binding may still grant
//   top.cpp               the end of the mapped memory: growing, stepping over mappings of others, trimming;
//                         foreign_mappings.h remembers those
//   purge.cpp             returns pages to the system; purge_rule.h decides which are due
//   move.cpp, clear.cpp   realloc and calloc of big objects
//   huge_pages.cpp        which parts may have huge pages; huge_page_touches.h times their first touches;
//                         evidence.cpp: big objects have them where memory was densely used
//   own_pages.cpp         the alternative to shared huge pages, for incremental_sharing=0
//
// Finding or freeing a run costs O(log n) of n free runs, and cutting it one step more for each piece that the cut
// passes. A freed run merges with its free neighbours at once. The memory above `top_` was never used (the paper's bump
// pointers). It, and memory returned to the OS, reads as zero. Each bag's mark records that, for calloc.
//
// Where a page holds several bags (64 KiB pages on some aarch64 kernels), runs of big objects are whole pages, so that
// each can be bound, moved and returned by itself. Of the runs of small bags only wholly free pages are returned.
//
// Thread-safe. lock_ guards the free runs; no system call is made under it. growth_lock_ guards the end of the mapped
// memory and, under strict binding, the node's remaining pages (node_room.h), granted to one request at a time. Only a
// thread that needs more than is mapped waits for it, as it would in the kernel. Order: growth_lock_, then lock_.
#pragma once

#include <atomic>

#include "base/experiments.h"
#include "heap/pages/foreign_mappings.h"
#include "heap/pages/free_runs.h"
#include "heap/pages/huge_page_touches.h"
#include "heap/pages/node_room.h"
#include "heap/pages/purge_rule.h"
#include "heap/space/region.h"
#include "os/lock.h"

namespace numalloc {

namespace policy::moving {

// Moved blocks lie in mappings of their own, and each may split another. The kernel allows a process 65,530 mappings,
// and most of them are left to the program.
constexpr std::uint32_t most_mappings = 8192;

}  // namespace policy::moving

namespace policy::evidence {

// Each change of advice between two bags may be the border of two mappings. Evidence makes 4,096 in a process, at most
// (evidence.cpp): with the mappings of moved blocks 1/5 of what it may have.
constexpr std::uint32_t most_changes = 4096;

}  // namespace policy::evidence

struct PageHeapOptions {
    std::int32_t purge_delay = 1000;  // milliseconds; 0: at once, -1: never
    bool huge_pages = false;          // bags may lie on huge pages: break up as few as possible
    bool huge_on_evidence = false;    // big objects have them only where memory was densely used: evidence.cpp
    // os/huge_page_cost.h; nullptr: huge pages are never dear.
    HugePageTouches::Touch touch_is_dear = nullptr;
    bool populate = false;          // put pages behind bags before handing them out
    std::uint16_t os_node = 0;      // the node whose memory must suffice for that
    std::uint32_t page_owners = 0;  // owners with huge pages of their own (an experiment): see take_small()
    std::uint32_t most_moved = policy::moving::most_mappings;  // most mappings that moved blocks may lie in
    // From this number of changes of advice on, big objects have the advice that is there.
    std::uint32_t most_advice_changes = policy::evidence::most_changes;
};

struct PageHeapUse {
    std::uint64_t big_bags;    // in big objects
    std::uint64_t small_bags;  // in small bags
    std::uint64_t bound_bags;  // in bound heaps
    std::uint64_t free_bags;   // free below the top
    std::uint64_t dirty_bags;  // of these, may be resident
    std::uint64_t big_objects;
    std::uint64_t purged_bags;     // returned to the OS since start
    Bytes returned_bytes;          // pages of bags in use that were returned since start
    std::uint64_t regretted_bags;  // since start: purged, and missed soon after (dirty_limit.h)
    std::uint64_t big_taken;       // big objects since start
};

class PageHeap {
public:
    Region& region() { return region_; }
    const Region& region() const { return region_; }

    // Call it once, after region().open() and before any other function.
    void start(const PageHeapOptions& options) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Allocates a run of `bags` bags whose first bag is a multiple of `alignment` bags (a power of two) from address 0.
    // `none` when the node has no room. Bags whose dirty bit is clear read as zero. The bits stay valid until the run
    // is freed. `c`: the class of the objects that the run is for.
    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c = no_class)
        NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        return take(bags, alignment, state, c, 0, false);
    }
    // Takes a target for move(): its first `moved` bags will get the pages of another run. `dense`: the rest may have
    // huge pages, although it was never used.
    BagIndex take_to_move(std::uint32_t bags, std::uint32_t alignment, std::uint32_t moved, bool dense)
        NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        return take(bags, alignment, BagState::big, no_class, moved, dense);
    }
    static constexpr BagIndex none = no_bag;

    // Takes a run for objects of class `c`. With page_owners it is cut from a huge page that only `owner` uses.
    BagIndex take_small(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        if constexpr (experiments)
            if (!shares_huge_pages()) return take_owned(bags, c, owner);
        return take(bags, 1, BagState::small, c);
    }
    // The same from shared memory and without a system call, for callers that hold a lock. `none`: try take_small().
    BagIndex take_small_at_once(std::uint32_t bags, ClassId c) NUMALLOC_EXCLUDES(lock_);
    // Times the first touch of a huge page of such a run. Call it once no lock is held. The first `own` bytes are the
    // caller's.
    void sample_cost_of_small(BagIndex run, std::uint32_t bags, Bytes own) NUMALLOC_EXCLUDES(lock_);
    bool shares_huge_pages() const { return !experiments || rests_ == nullptr; }
    // Frees the rests of owners' huge pages. For experiments only, as is the rest of own_pages.cpp.
    void give_rests() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // The length of a big object's run: `bags` rounded up to whole pages.
    static std::uint32_t whole_pages(std::uint32_t bags) { return (bags + page_bags() - 1) & ~(page_bags() - 1); }

    // Frees a run that take() returned. Then purges part of what is due, in proportion to the length of the run.
    void give(BagIndex run) NUMALLOC_EXCLUDES(growth_lock_, lock_) { give(run, Contents::any); }

    // Zeroes the first bytes of a run that was just taken; writes only where they may not be zero.
    void clear(BagIndex run, Bytes bytes);

    // Copies bytes to the beginning of a run that was just taken; writes only pages that are not zero or must become
    // so.
    void copy_to(BagIndex run, const void* from, Bytes bytes) const;

    // Finds out how a big object is used that is about to be freed or moved (evidence.cpp). Returns whether densely;
    // false also if that is unknown. Only for the object's owner.
    bool learn_from(BagIndex run) NUMALLOC_EXCLUDES(lock_);

    // Moves the first `bags` bags of big object `from` to big object `to` and frees `from`: moves pages where the
    // kernel can, else copies. false: both are still allocated and `from` is unchanged, but `to` is no longer fully
    // mapped and must not be used.
    bool move(BagIndex from, BagIndex to, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    // The number of mappings that moved blocks lie in.
    std::uint32_t moved_mappings() const { return moved_mappings_.load(std::memory_order_relaxed); }

    // The mappings of others that were stepped over.
    const ForeignMappings& foreign() const { return foreign_; }

    // Binds and advises bags in use like the rest of the region, after their mapping was changed.
    void settle(BagIndex first, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    // Returns pages of a bag in use to the OS; they read as zero afterwards. false if the OS refuses: some may be gone
    // then. Not for strict binding, which keeps a page behind every address that it handed out.
    bool return_pages(void* p, Bytes bytes) NUMALLOC_EXCLUDES(lock_);

    bool returns_pages() const { return !options_.populate; }
    // Whether returning pages of the bag may break up a huge page.
    bool breaks_huge_page(BagIndex b) const { return may_be_huge(b) && region_.count(BagMark::normal, b, 1) == 0; }

    // How long memory stays free before it is purged, from now on: PageHeapOptions::purge_delay.
    void set_purge_delay(std::int32_t delay) NUMALLOC_EXCLUDES(lock_);

    // The number of threads that the heap serves now, which decides how much it keeps for them.
    void set_threads(std::uint32_t threads) { threads_.store(threads, std::memory_order_relaxed); }

    // The length in bags of the big object that begins at the bag; 0 if none does. Takes no lock: exact for an object
    // that no other thread frees, safe for any bag of the region.
    std::uint32_t big_run(BagIndex b) const;

    // The node that a big object's pages were moved to; no_node if they were not moved. Only for the object's owner.
    NodeId moved_to(BagIndex run) const { return NodeId{bag(run).taken - 1U}; }
    void set_moved(BagIndex run, NodeId node) { bag(run).taken = static_cast<std::uint16_t>(node.value + 1U); }

    // For the two above: the pages are spread over several nodes, and the kernel knows which.
    static constexpr NodeId spread_over{0xFFFD};

    // Makes a run shorter or, if the bags behind it are free, longer. false: the run is unchanged.
    bool resize(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Returns a bounded part of what is due to the OS; with `all`, everything that is free. Returns the bytes.
    Bytes purge(bool all) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    PageHeapUse use() NUMALLOC_EXCLUDES(lock_);
    Bytes in_use() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        return Bytes{bags_in_use()} << bag_shift;
    }
    void validate() NUMALLOC_EXCLUDES(lock_);

private:
    enum class Contents { any, zero };
    // A range that is being purged: marked as allocated, so that no thread takes it or merges it with a free run.
    struct Purging {
        BagIndex first;
        std::uint32_t bags = 0;
        std::uint32_t dirty = 0;  // of these, may hold other than zeros
        bool rested = false;      // as in PurgeRule::Due
        // Others use the rest of the huge page that the range begins or ends in.
        bool breaks_first = false, breaks_last = false;
    };
    // What to advise for memory that was just taken, once no lock is held.
    struct Advice {
        BagRange huge{}, normal{};
        bool dense = false;  // never used memory may be huge
    };
    // What the samples of a big object show (evidence.cpp).
    enum class Use { dense, sparse, unknown };
    struct Sampled {
        BagRange decides{}, part{};
    };
    // The result of discard().
    enum class Discarded { done, refused, lost };

    static constexpr std::uint32_t huge_bags = static_cast<std::uint32_t>(os::huge_page / bag_bytes);
    static std::uint32_t page_bags() {
        return static_cast<std::uint32_t>(max_of(os::page_size(), bag_bytes) / bag_bytes);
    }
    // The first bag of the page that holds b, and the first bag from b on that begins a page (as regions do).
    static BagIndex page_start(BagIndex b) { return BagIndex{b.value & ~(page_bags() - 1)}; }
    static BagIndex page_end(BagIndex b) { return BagIndex{whole_pages(b.value)}; }
    static bool has_whole_pages(BagState state) { return state == BagState::big || state == BagState::bound_big; }

    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved,
                  bool dense) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_mapped(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Advice* advice)
        NUMALLOC_EXCLUDES(lock_);
    void start_owning(std::uint32_t owners);
    BagIndex take_owned(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_free(std::uint32_t bags, std::uint32_t alignment, BagState state, Advice* advice)
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
    void set_normal(BagRange range, bool on) NUMALLOC_REQUIRES(lock_);
    void set_committed(std::uint64_t end) NUMALLOC_REQUIRES(lock_);

    BagIndex at_top(std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    BagIndex extend_top(std::uint32_t bags, std::uint32_t alignment) NUMALLOC_REQUIRES(lock_);
    void move_top(BagIndex to) NUMALLOC_REQUIRES(lock_);
    void free_top_page() NUMALLOC_REQUIRES(lock_);
    bool grow(std::uint32_t bags, std::uint32_t alignment, BagIndex at, BagState state)
        NUMALLOC_EXCLUDES(growth_lock_, lock_);
    void use_mapped(BagIndex to, BagState state) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
    bool grow_over(std::uint64_t bags) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
    bool top_is_clean() const NUMALLOC_REQUIRES(lock_);
    void trim_top() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    bool back(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    Purging pick(std::uint32_t most, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    bool may_be_huge(BagIndex b) const { return options_.huge_pages && b >= region_.huge_from(); }
    BagIndex aligned_down(BagIndex b, std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    BagRange stretch_of(BagIndex b) const NUMALLOC_REQUIRES(lock_);
    BagRange whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    void break_huge_pages(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    BagRange shared_huge_page(BagIndex run, bool at_end) const NUMALLOC_REQUIRES(lock_);
    void purge_beside_used() NUMALLOC_EXCLUDES(lock_);
    void no_more_huge(BagIndex b) NUMALLOC_EXCLUDES(lock_);
    void huge_again(BagRange range) NUMALLOC_EXCLUDES(lock_);
    bool leave_normal(BagIndex from, BagIndex to);
    BagRange huge_pages_in(BagIndex first, BagIndex end) const;
    BagRange without_evidence(BagIndex from, BagIndex to, BagState state) NUMALLOC_REQUIRES(lock_);
    bool may_mark(BagRange range, bool normal) const NUMALLOC_REQUIRES(lock_);
    void advise_as_marked(BagRange range, bool settled);
    Sampled sampled(BagIndex run) const;
    Use use_of(BagRange range, bool is_normal) const;
    BagRange count_untouched(BagIndex run, std::uint32_t bags);
    void sample_cost(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);
    bool time_touch(BagIndex b, Bytes own) NUMALLOC_EXCLUDES(lock_);
    Purging cut_range(BagIndex run, BagRange part, BagIndex near) NUMALLOC_REQUIRES(lock_);
    Purging cut_end(BagIndex piece, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    Discarded discard(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    void finish(const Purging& range, Discarded how, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    std::uint32_t purge_due(Purging range, std::uint32_t most) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    bool copy(BagIndex from, BagIndex to, Bytes done, Bytes bytes);
    Bytes move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last) NUMALLOC_EXCLUDES(lock_);
    os::Replaced renew(BagIndex b, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);
    void note_mapping(BagIndex b, std::uint32_t bags, bool moved) NUMALLOC_EXCLUDES(lock_);

    std::uint64_t& bags_of(BagState state) NUMALLOC_REQUIRES(lock_) {
        return state == BagState::big ? use_.big_bags : state == BagState::small ? use_.small_bags : use_.bound_bags;
    }
    std::uint64_t bags_in_use() const NUMALLOC_REQUIRES(lock_) {
        return use_.big_bags + use_.small_bags + use_.bound_bags;
    }
    Bag& bag(BagIndex b) const { return region_.bag(b); }

    // Read without a lock: constant, written under lock_, or thread-safe by themselves. lock_ guards the region's
    // entries and marks of free bags; those of bags in use belong to the bags' owner.
    Region region_;
    PageHeapOptions options_;
    std::atomic<BagIndex>* rests_ = nullptr;  // of each owner: the rest of its huge page, or none. nullptr: all share
    std::atomic<std::uint32_t> moved_mappings_{0};
    HugePageTouches touches_;
    ForeignMappings foreign_;

    alignas(64) os::Lock<os::LockRank::growth> growth_lock_;
    NodeRoom room_ NUMALLOC_GUARDED_BY(growth_lock_);  // used if options_.populate

    alignas(64) os::Lock<os::LockRank::pages> lock_;
    std::atomic<std::uint32_t> threads_{1};  // accessed without the lock
    BagIndex top_ NUMALLOC_GUARDED_BY(lock_);
    BagIndex highest_top_ NUMALLOC_GUARDED_BY(lock_);              // bags above were never used
    std::uint32_t advice_changes_ NUMALLOC_GUARDED_BY(lock_) = 0;  // see evidence.cpp
    FreeRuns free_ NUMALLOC_GUARDED_BY(lock_);
    PageHeapUse use_ NUMALLOC_GUARDED_BY(lock_){};
    PurgeRule rule_ NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
