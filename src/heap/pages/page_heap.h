// The bags of one node: runs of bags for small objects and for big objects (above 512 KiB), from one set of free runs,
// so that memory freed by either serves both.
//
// Its base classes, each derived from the one before, only to share the lock; they declare a part of its interface:
//   node_bags.h           which bags are free (free_runs.h: by length and by age), options, counts, and the lock
//   huge_page_advice.h    which bags may have huge pages: of big objects, where memory was densely used (evidence.cpp);
//                         none where they are dear (huge_page_touches.h)
//   moved_mappings.h      the mappings of blocks that realloc moved
//   top.h                 the end of the mapped memory: growing, stepping over mappings of others
//                         (foreign_mappings.h), trimming; node_room.h: what strict binding may still grant
//   purger.h              returns pages to the system; purge_rule.h decides which are due
//
// PageHeap itself:
//   page_heap.cpp         allocates, frees and resizes runs
//   move.cpp, clear.cpp   realloc and calloc of big objects
//   own_pages.cpp         the alternative to shared huge pages, for incremental_sharing=0
//
// Finding or freeing a run costs O(log n) of n free runs, and cutting it one step more for each piece that the cut
// passes; taking one, and freeing one of 32 MiB or more, also counts its dirty bags, 64 at a time. A freed run merges
// with its free neighbours at once. Memory that was never used, and memory returned to the OS, reads as zero:
// BagMark::dirty records, for calloc, which bags may not.
//
// Thread-safe. lock_ guards the free runs; no system call is made under it. growth_lock_ guards the end of the mapped
// memory and, under strict binding, the node's remaining pages (node_room.h), granted to one request at a time. Order:
// growth_lock_, then lock_.
#pragma once

#include <atomic>

#include "base/experiments.h"
#include "heap/pages/purger.h"

namespace numalloc {

class PageHeap : public Purger {
public:
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
    // Takes a run for objects of class `c`. With page_owners it is cut from a huge page that only `owner` uses.
    BagIndex take_small(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_) {
        if constexpr (experiments)
            if (!shares_huge_pages()) return take_owned(bags, c, owner);
        return take(bags, 1, BagState::small, c);
    }
    // The same from shared memory and without a system call, for callers that hold a lock. `none`: try take_small().
    BagIndex take_small_at_once(std::uint32_t bags, ClassId c) NUMALLOC_EXCLUDES(lock_);
    bool shares_huge_pages() const { return !experiments || rests_ == nullptr; }
    // Frees the rests of owners' huge pages. For experiments only, as is the rest of own_pages.cpp.
    void give_rests() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Frees a run that take() returned. Then purges part of what is due, which a long run may be by itself
    // (dirty_limit.h): up to 8 MiB or twice the run, whichever is more. `zero`: its pages have been discarded.
    enum class Contents { any, zero };
    void give(BagIndex run, Contents contents = Contents::any) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Zeroes the first bytes of a run that was just taken; writes only where they may not be zero.
    void clear(BagIndex run, Bytes bytes);

    // Copies bytes to the beginning of a run that was just taken; writes only pages that are not zero or must become
    // so.
    void copy_to(BagIndex run, const void* from, Bytes bytes) const;

    // Moves the first `bags` bags of big object `from` to big object `to` and frees `from`. Copies where the kernel
    // does not move pages, and if both places are mostly resident, unless `how` decides it. by_pages: for a thread of
    // another node, whose pages at `to` are to be its own node's (unbind_run()). false: `from` is unchanged, and `to`
    // is lost: no longer fully mapped.
    enum class Moves { cheaply, by_copy, by_pages };
    bool move(BagIndex from, BagIndex to, std::uint32_t bags, Moves how = Moves::cheaply)
        NUMALLOC_EXCLUDES(growth_lock_, lock_);

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

    void validate() NUMALLOC_EXCLUDES(lock_);

private:
    void lose(BagIndex run) NUMALLOC_EXCLUDES(lock_);

    // What to advise for memory that was just taken, once no lock is held.
    struct Advice {
        BagRange huge{}, normal{};
        bool dense = false;  // never used memory may be huge
    };

    BagIndex take(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, std::uint32_t moved,
                  bool dense) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_mapped(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Advice* advice)
        NUMALLOC_EXCLUDES(lock_);
    void start_owning(std::uint32_t owners);
    BagIndex take_owned(std::uint32_t bags, ClassId c, std::uint32_t owner) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    BagIndex take_free(std::uint32_t bags, std::uint32_t alignment, BagState state, ClassId c, Advice* advice)
        NUMALLOC_REQUIRES(lock_);
    bool lengthen(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);
    void use_new(BagIndex first, std::uint32_t bags, BagState state, unsigned kind) NUMALLOC_REQUIRES(lock_);
    void not_used(BagIndex first, std::uint32_t bags, BagState state) NUMALLOC_REQUIRES(lock_);
    [[nodiscard]] Purging make_free(BagIndex first, std::uint32_t bags, unsigned kind, Contents contents)
        NUMALLOC_REQUIRES(lock_);
    bool back(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    bool discards_for(const char* source, BagIndex b, Bytes n) const;
    bool copy(BagIndex from, BagIndex to, Bytes done, Bytes bytes);

    // Of each owner: the rest of its huge page, or none. nullptr: all share. Constant after start().
    std::atomic<BagIndex>* rests_ = nullptr;
};

}  // namespace numalloc
