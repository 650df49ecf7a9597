// The end of a node's bags: growing the heap and returning its address space.
//
//   first_bag ... free and used ...   top_        ...        committed            nothing, or others' mappings
//                                     never used, or unused since it was trimmed: mapped, zero
//
// `top_` is the paper's bump pointer.
//
// growth_lock_ keeps the end of the mapped memory where it is. A thread waits for it only if it needs more than is
// mapped or, under strict binding, must populate pages (PageHeap::back()).
#pragma once

#include "heap/pages/moved_mappings.h"
#include "heap/pages/node_room.h"

namespace numalloc {

class Top : public MovedMappings {
public:
    // For the child of a fork (heap/node/inherited.cpp): has pages of all bags placed by first touch, and undoes that.
    void unbind();
    void bind_again() NUMALLOC_EXCLUDES(growth_lock_);
    // The same as unbind() for all bags up to the end of a run, which has or will have such pages.
    void unbind_run(BagIndex run) NUMALLOC_EXCLUDES(growth_lock_);

protected:
    // Takes a run at the top: the end of the free run right before it, if there is one, and mapped bags from
    // the top on. Bags skipped for the alignment become free. `none`: not enough is mapped; release lock_ and grow().
    BagIndex extend_top(std::uint32_t bags, std::uint32_t alignment) NUMALLOC_REQUIRES(lock_);
    // Raises the top to `to`, at most committed(). The bags passed are clean and in no run: the caller uses or frees
    // them.
    void move_top(BagIndex to) NUMALLOC_REQUIRES(lock_);
    // Maps more memory, for what needs_evidence() or (`on_evidence` false) for others. `at` == none: for a new run of
    // `bags` bags; may step over mappings of others. Else for `bags` bags that begin at `at`, behind a run that grows.
    // true: try again (another thread may have taken the memory by then).
    bool grow(std::uint32_t bags, std::uint32_t alignment, BagIndex at, bool on_evidence)
        NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Frees the bags from the top to the end of its page or of its huge page, which is resident as a whole. Otherwise
    // neither that page nor the address space before it could be returned.
    void free_top_page() NUMALLOC_REQUIRES(lock_);
    // Whether trim_top() has something to do.
    bool top_is_clean() const NUMALLOC_REQUIRES(lock_);
    // Unmaps the clean end of the heap, because limits on address space, core dumps and locked memory count what is
    // mapped.
    void trim_top() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    BagIndex top_ NUMALLOC_GUARDED_BY(lock_);
    BagIndex highest_top_ NUMALLOC_GUARDED_BY(lock_);  // bags from here on count as never used

    // In a line of its own: those who wait for it must not slow the holder of lock_.
    alignas(64) os::Lock<os::LockRank::growth> growth_lock_;
    NodeRoom room_ NUMALLOC_GUARDED_BY(growth_lock_);  // used if options_.populate

private:
    void unbind(BagRange bags);
    BagIndex at_top(std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    void use_mapped(BagIndex to, bool on_evidence) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
    bool grow_over(std::uint64_t bags) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
};

}  // namespace numalloc
