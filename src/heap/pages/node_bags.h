// What all parts of a PageHeap share: the bags of its node, which of them are free, the options, the counts, and the
// lock. Each part is a base class of the next (page_heap.h), because clang's lock analysis treats a base's lock_ as the
// object's own, but not a lock reached through a reference.
//
// Below the top (top.h) each bag is in use, in free_, or neither: being purged (Purger::Purging), lost, or covered by
// another mapping. The last three have the state `small`, so that no free run merges with them, but use_ does not count
// them.
//
// Where a page holds several bags (64 KiB pages on some aarch64 kernels), runs of big objects are whole pages, so that
// each can be bound, moved and returned by itself. Of the runs of small bags only wholly free pages are returned.
#pragma once

#include "heap/pages/foreign_mappings.h"
#include "heap/pages/free_runs.h"
#include "heap/pages/huge_page_touches.h"
#include "heap/space/region.h"
#include "os/lock.h"

namespace numalloc {

// Defaults of PageHeapOptions.
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
    bool huge_on_evidence = false;    // objects above 8 KiB have them only where memory was densely used: evidence.cpp
    // os/huge_page_cost.h; nullptr: huge pages are never dear.
    HugePageTouches::Touch touch_is_dear = nullptr;
    bool populate = false;          // put pages behind bags before handing them out
    std::uint16_t os_node = 0;      // the node whose memory must suffice for that
    std::uint32_t page_owners = 0;  // owners with huge pages of their own (an experiment): see PageHeap::take_small()
    std::uint32_t most_moved = policy::moving::most_mappings;  // most mappings that moved blocks may lie in
    // From this number of changes of advice on, objects have the advice that is there.
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

class NodeBags {
public:
    static constexpr BagIndex none = no_bag;

    Region& region() { return region_; }
    const Region& region() const { return region_; }

    // The mappings of others that were stepped over.
    const ForeignMappings& foreign() const { return foreign_; }

    // The length of a big object's run: `bags` rounded up to whole pages.
    static std::uint32_t whole_pages(std::uint32_t bags) { return (bags + page_bags() - 1) & ~(page_bags() - 1); }

    // Whether pages of bags in use may be returned to the OS. Not under strict binding, which keeps a page behind every
    // address that it handed out.
    bool returns_pages() const { return !options_.populate; }

    PageHeapUse use() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        PageHeapUse u = use_;
        u.free_bags = free_.bags();
        u.dirty_bags = std::uint64_t{free_.dirty()} + free_.stuck();
        return u;
    }
    Bytes in_use() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        return Bytes{bags_in_use()} << bag_shift;
    }

protected:
    // Only PageHeap is constructed, and PageHeap::start() sets up all parts.
    NodeBags() = default;

    // Bags in a page: 1, or more where pages are longer.
    static std::uint32_t page_bags() {
        return static_cast<std::uint32_t>(max_of(os::page_size(), bag_bytes) / bag_bytes);
    }
    // The first bag of the page that holds b, and the first bag from b on that begins a page (as regions do).
    static BagIndex page_start(BagIndex b) { return BagIndex{b.value & ~(page_bags() - 1)}; }
    static BagIndex page_end(BagIndex b) { return BagIndex{whole_pages(b.value)}; }
    // Whether runs of that state are whole pages.
    static bool has_whole_pages(BagState state) { return state == BagState::big || state == BagState::bound_big; }

    Bag& bag(BagIndex b) const { return region_.bag(b); }
    // Region::set(), for which clang checks the lock.
    void set(BagMark mark, BagIndex b, std::uint32_t bags, bool on) NUMALLOC_REQUIRES(lock_) {
        region_.set(mark, b, bags, on);
    }
    // Writes the first and the last entry of a run in use: see bag.h.
    void write_used_run(BagIndex run, std::uint32_t length, BagState state) NUMALLOC_REQUIRES(lock_) {
        bag(run).run = length;
        bag(run).state = state;
        if (length > 1) {
            Bag& last = bag(run + (length - 1));
            last.state = BagState::inside;
            last.run = length - 1;
        }
    }
    // The last bag at or before b whose address is a multiple of `alignment` bags.
    BagIndex aligned_down(BagIndex b, std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_) {
        const BagIndex next = free_.aligned(b, alignment);
        return next == b ? b : next - alignment;
    }
    // The counter of bags in use of that state.
    std::uint64_t& bags_of(BagState state) NUMALLOC_REQUIRES(lock_) {
        return state == BagState::big ? use_.big_bags : state == BagState::small ? use_.small_bags : use_.bound_bags;
    }
    std::uint64_t bags_in_use() const NUMALLOC_REQUIRES(lock_) {
        return use_.big_bags + use_.small_bags + use_.bound_bags;
    }

    // Read without a lock: constant, written under lock_, or thread-safe by themselves. lock_ guards the region's
    // entries and marks of free bags; those of bags in use belong to the bags' owner.
    Region region_;
    PageHeapOptions options_;
    ForeignMappings foreign_;
    // HugePageAdvice's. Here, because each take() reads it without the lock: behind use_ each would write its line.
    HugePageTouches touches_;

    alignas(64) os::Lock<os::LockRank::pages> lock_;
    FreeRuns free_ NUMALLOC_GUARDED_BY(lock_);
    PageHeapUse use_ NUMALLOC_GUARDED_BY(lock_){};
};

}  // namespace numalloc
