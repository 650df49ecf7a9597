// The bags of one node: runs of them for small bags and for big objects (above 512 KiB), out of
// one tree of free runs, so that memory freed by either serves both.
//
// Taking and giving are O(log n); a freed run coalesces with its free neighbours at once. What
// was never used lies above `top_` (the paper's bump pointers); it and what went back to the OS
// is known to be zero, bag by bag, so that calloc need not clear it again.
//
// Where a page holds several bags (64 KiB on some aarch64 kernels), the runs of big objects are whole pages, so that
// they can be bound, moved and given back by themselves; of small bags' runs go back the pages that are free whole.
//
// Thread-safe; one lock (rank extents). Purging drops the lock while the kernel works.
#pragma once

#include "heap/pages/dirty_limit.h"
#include "heap/pages/extent_tree.h"
#include "heap/space/region.h"
#include "os/lock.h"

namespace numalloc {

struct PageHeapOptions {
    std::int32_t purge_delay = 1000;  // milliseconds; 0 at once, -1 never
    bool huge_pages = false;          // bags may be huge pages: as few as can be are broken up
    bool populate = false;            // put pages behind bags before they are handed out
    std::uint16_t os_node = 0;        // whose memory must suffice for that
    std::uint32_t page_owners = 0;    // who may have huge pages of their own: see take_small()
    std::uint32_t most_moved = 8192;  // mappings that moved blocks may lie in
};

struct PageHeapUse {
    std::uint64_t big_bags;        // in big objects
    std::uint64_t small_bags;      // in small bags
    std::uint64_t bound_bags;      // in bound heaps
    std::uint64_t free_bags;       // free below the top
    std::uint64_t dirty_bags;      // of these, resident
    std::uint64_t big_objects;
    std::uint64_t purged_bags;     // given back to the OS since start
};

class PageHeap {
public:
    Region& region() { return region_; }
    const Region& region() const { return region_; }

    // After region().open(). Called once, before any other.
    void start(const PageHeapOptions& options);

    // A run of `bags` bags whose first is a multiple of `alignment` bags (a power of two) from
    // address 0. no_bag when the node has no room. What of it the region does not mark as dirty is zero;
    // the marks stand until it is given. `c`: the class of the objects that it is for.
    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c = no_class) {
        return take(bags, alignment, state, c, 0);
    }
    // A place for move(): the first `moved` bags will have the pages of another run.
    BagIndex take_to_move(std::uint32_t bags, std::uint32_t alignment, std::uint32_t moved) {
        return take(bags, alignment, BagState::big, no_class, moved);
    }
    static constexpr BagIndex none{no_bag};

    // The same for bags of objects. With page_owners they are cut from a huge page that only `owner`
    // has; one owner's calls, and give_rest(), must not overlap.
    BagIndex take_small(std::uint32_t bags, ClassId c, std::uint32_t owner);
    // What is left of the owner's huge page, for the caller to give; none if it has none.
    BagIndex give_rest(std::uint32_t owner);
    bool shares_huge_pages() const { return pages_ == nullptr; }

    // Bags of a big object's run that has so many at least: all of its pages.
    static std::uint32_t whole_pages(std::uint32_t bags) { return page_start(bags + page_bags() - 1); }

    // A run that take() returned.
    void give(BagIndex run);

    // Makes the first bytes of a run zero that was just taken: writes only where it may not be.
    void clear(BagIndex run, Bytes bytes);

    // The first `bags` bags of big object `from` become those of big object `to`, and `from` is
    // given: by moving pages where the kernel can, else by copying. false: both are allocated
    // still, and `from` is as it was, but what was `to` no longer exists.
    bool move(BagIndex from, BagIndex to, std::uint32_t bags);
    // Mappings that moved blocks lie in.
    std::uint32_t moved_mappings() const { return __atomic_load_n(&moved_mappings_, __ATOMIC_RELAXED); }

    // How many threads it serves now, which says how much is kept for them.
    void set_threads(std::uint32_t threads) { limit_.set_threads(threads); }

    // What an allocated run is; see head_of. Safe for any bag of the region: `run` 0 when the
    // bag is not the first of a big object.
    std::uint32_t big_run(BagIndex b);

    // Where the pages of a big object were moved, if not to its own node. For its owner.
    NodeId moved_to(BagIndex run) const { return NodeId{bag(run.value).taken - 1U}; }
    void set_moved(BagIndex run, NodeId node) { bag(run.value).taken = static_cast<std::uint16_t>(node.value + 1U); }

    // Makes a big object's run shorter or, where its neighbour is free, longer. false leaves it alone.
    bool resize(BagIndex run, std::uint32_t bags);

    // Gives back to the OS what has been free for purge_delay; everything when `all`. The bytes.
    Bytes purge(bool all);

    PageHeapUse use();
    void validate();


private:
    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved);
    void release(std::uint32_t run, std::uint32_t length, std::uint32_t dirty);
    std::uint32_t free_run_before(std::uint32_t run) const;
    void mark(std::uint32_t run, std::uint32_t length, BagState state);
    std::uint32_t extend_top(std::uint32_t bags, std::uint32_t alignment);
    std::uint32_t extend_over(std::uint32_t bags, std::uint32_t alignment);
    void trim_top(std::uint32_t run);
    std::uint32_t trim_purged(std::uint32_t run, std::uint32_t length);
    std::uint32_t aligned_in(std::uint32_t run, std::uint32_t alignment) const;
    bool back(std::uint32_t run, std::uint32_t bags);
    bool node_has(Bytes bytes);

    void add_free(std::uint32_t run, std::uint32_t length, std::uint32_t dirty, std::uint32_t freed_at);
    void remove_free(std::uint32_t run);
    static constexpr std::uint32_t huge_bags = static_cast<std::uint32_t>(os::huge_page / bag_bytes);
    static std::uint32_t page_bags() { return static_cast<std::uint32_t>(max_of(os::page_size(), bag_bytes) / bag_bytes); }
    // The bag that the page of bag b begins with: regions begin with a page.
    static std::uint32_t page_start(std::uint32_t b) { return b & ~(page_bags() - 1); }
    static bool has_whole_pages(BagState state) { return state == BagState::big || state == BagState::bound_big; }
    enum class Younger { stays, too };
    std::uint32_t purge_run(std::uint32_t run, Younger younger);
    std::uint32_t purge_oldest(std::uint32_t bags);
    std::uint32_t purge_owned(std::uint32_t run, std::uint32_t length, Younger younger);
    // Milliseconds within which two parts of a run count as freed together.
    std::int32_t together() const { return max_of(options_.purge_delay, 0) / 8; }
    bool has_rested(std::uint32_t run) const;
    void enforce_limit();
    enum class Contents { any, zero };
    void give_locked(std::uint32_t run, Contents contents);
    bool copy(BagIndex from, BagIndex to, Bytes done, Bytes bytes);
    Bytes move_pieces(BagIndex from, BagIndex to, Bytes bytes, os::Replaced& last);
    void note_mapping(std::uint32_t b, std::uint32_t bags, bool moved);
    bool purge_bags(std::uint32_t b, std::uint32_t bags, bool& lost);
    std::uint64_t& bags_of(BagState state) {
        return state == BagState::big ? use_.big_bags : state == BagState::small ? use_.small_bags : use_.bound_bags;
    }
    std::uint64_t bags_in_use() const { return use_.big_bags + use_.small_bags + use_.bound_bags; }
    Bag& bag(std::uint32_t i) const { return region_.bag(BagIndex{i}); }

    os::Lock<os::LockRank::extents> lock_;
    Region region_;
    ExtentTree tree_;
    std::uint32_t top_ = 0;
    std::uint32_t oldest_ = no_bag;  // queue of dirty free runs
    std::uint32_t newest_ = no_bag;
    std::uint32_t dirty_ = 0;        // bags in that queue that are dirty
    DirtyLimit limit_;
    PageHeapOptions options_;
    std::uint32_t* pages_ = nullptr;  // the rest of each owner's huge page, a run; 0: none. nullptr: all share
    std::uint32_t moved_mappings_ = 0;
    Bytes kept_by_kernel_ = 0;       // of the node's free memory, for strict binding
    Bytes granted_ = 0;              // of it, still ours to populate by the last reading
    std::uint32_t granted_at_ = 0;   // milliseconds
    PageHeapUse use_{};
};

}  // namespace numalloc
