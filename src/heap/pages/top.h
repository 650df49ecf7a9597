// The end of a node's bags: growing the heap and returning its address space.
//
//   first_bag ... free and used ...   top_        ...        committed            nothing, or others' mappings
//                                     never used, or unused since it was trimmed: mapped, zero
//
// The memory above `top_` was never used (the paper's bump pointers), or is unused since it was trimmed. It reads as
// zero.
//
// growth_lock_ keeps the end of the mapped memory where it is. Only a thread that needs more than is mapped waits for
// it, as it would in the kernel. Order: growth_lock_, then lock_. System calls are made without lock_.
#pragma once

#include "heap/pages/moved_mappings.h"

namespace numalloc {

class Top : public MovedMappings {
protected:
    // Takes mapped bags at the top, together with the end of a free run right before them. `none`: grow() first.
    BagIndex extend_top(std::uint32_t bags, std::uint32_t alignment) NUMALLOC_REQUIRES(lock_);
    // Moves the top over bags, which are clean.
    void move_top(BagIndex to) NUMALLOC_REQUIRES(lock_);
    // Maps memory for a request that the free runs and the top could not serve or, from `at` on, for a run that grows.
    // true if a retry may succeed (another thread may have taken the memory by then).
    bool grow(std::uint32_t bags, std::uint32_t alignment, BagIndex at, BagState state)
        NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Frees the bags of the top's page if a page holds several bags: otherwise neither the page nor the address space
    // before it could be returned. Does the same for a huge page, which is resident as a whole.
    void free_top_page() NUMALLOC_REQUIRES(lock_);
    // Whether trim_top() has something to do.
    bool top_is_clean() const NUMALLOC_REQUIRES(lock_);
    // Unmaps the clean end of the heap, because limits on address space, core dumps and locked memory count what is
    // mapped.
    void trim_top() NUMALLOC_EXCLUDES(growth_lock_, lock_);

    alignas(64) os::Lock<os::LockRank::growth> growth_lock_;
    alignas(64) BagIndex top_ NUMALLOC_GUARDED_BY(lock_);
    BagIndex highest_top_ NUMALLOC_GUARDED_BY(lock_);  // bags above were never used

private:
    BagIndex at_top(std::uint32_t alignment) const NUMALLOC_REQUIRES(lock_);
    void use_mapped(BagIndex to, BagState state) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
    bool grow_over(std::uint64_t bags) NUMALLOC_REQUIRES(growth_lock_) NUMALLOC_EXCLUDES(lock_);
};

}  // namespace numalloc
