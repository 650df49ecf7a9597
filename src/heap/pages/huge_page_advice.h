// Which bags of a node may have huge pages. BagMark::normal marks those that are advised against them; madvise() is
// called without the lock, so the advice may lag behind the mark.
//
// A stretch: 64 MiB, aligned (policy::huge_pages::stretch), as far as it is mapped and may be huge.
//
//   huge_page_advice.cpp  broken huge pages, and those that are dear just now (huge_page_touches.h times first touches)
//   evidence.cpp          objects above 8 KiB have them where memory was densely used
//
// Invariants:
//   advice_changes_ == number of bags b, first_bag < b < committed, whose BagMark::normal differs from that of b - 1
//   evidence does not raise it above PageHeapOptions::most_advice_changes (broken huge pages may: one change or two for
//   each 64 MiB)
#pragma once

#include "heap/pages/node_bags.h"

namespace numalloc {

namespace policy::evidence {

// Objects of up to 8 KiB fill their pages, as a rule. What is longer may be a buffer that is used in part.
constexpr Bytes up_to_here_filled = size_for(8 * KiB);

}  // namespace policy::evidence

class HugePageAdvice : public NodeBags {
public:
    // Binds bags in use like the rest of the region and advises them as marked, after their mapping was changed.
    void settle(BagIndex first, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    // Samples a big object that is about to be freed or moved, to learn how densely it was used (evidence.cpp). true:
    // densely. false: sparsely or unknown. Only for the object's owner.
    bool learn_from(BagIndex run) NUMALLOC_EXCLUDES(lock_);

    // Whether returning pages of the bag may break up a huge page.
    bool breaks_huge_page(BagIndex b) const { return may_be_huge(b) && region_.count(BagMark::normal, b, 1) == 0; }
    // The same for all of [b, end); true also if a part of it may be huge.
    bool breaks_huge_page(BagIndex b, BagIndex end) const {
        const BagIndex from = max_of(b, region_.huge_from());
        return options_.huge_pages && from < end && region_.count(BagMark::normal, from, end - from) != end - from;
    }

    // Times the first touch of a huge page of a run that PageHeap::take_small_at_once() returned. Call it once no lock
    // is held. The first `own` bytes are the caller's.
    void sample_cost_of_small(BagIndex run, std::uint32_t bags, Bytes own) NUMALLOC_EXCLUDES(lock_);

protected:
    // Bags in a huge page.
    static constexpr std::uint32_t huge_bags = static_cast<std::uint32_t>(os::huge_page / bag_bytes);

    // Whether the bag can lie on a huge page, whatever its mark.
    bool may_be_huge(BagIndex b) const { return options_.huge_pages && b >= region_.huge_from(); }

    // Marks bags as normal (`on`) or huge.
    void set_normal(BagRange range, bool on) NUMALLOC_REQUIRES(lock_);
    // Sets the end of the mapped memory. The marks of all bags below the old and the new end must be valid.
    void set_committed(std::uint64_t end) NUMALLOC_REQUIRES(lock_);
    // Calls madvise() for each row of bags with equal marks. `settled`: the kernel already has the advice for huge
    // ones, so that only normal ones need a call.
    void advise_as_marked(BagRange range, bool settled) NUMALLOC_EXCLUDES(lock_);

    // Call it after part of the bag's huge page was returned: marks and advises the bag's stretch as normal.
    void no_more_huge(BagIndex b) NUMALLOC_EXCLUDES(lock_);
    // The stretches that lie wholly in the free run and of which [first, first + bags) will be cut; clears their
    // BagMark::normal. Empty if none had it. Pass them to huge_again() once no lock is held: it advises huge pages or,
    // if those are dear, marks them again.
    BagRange whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    void huge_again(BagRange range) NUMALLOC_EXCLUDES(lock_);
    // Decides whether newly mapped bags [from, to) stay on normal pages, and then advises them. Sets no marks.
    bool leave_normal(BagIndex from, BagIndex to) NUMALLOC_EXCLUDES(lock_);
    // Whether huge pages for objects of the class `c`, or for a big one, wait for evidence (evidence.cpp).
    bool needs_evidence(BagState state, ClassId c) const {
        const bool is_buffer = state == BagState::small && shape_of(c).size > policy::evidence::up_to_here_filled;
        return options_.huge_on_evidence && (state == BagState::big || is_buffer);
    }
    // If never used bags [from, to) are about to be used so: marks the huge pages that begin in them as normal, the
    // last one as a whole. Returns what to pass to advise_as_marked(range, false) once no lock is held, or an empty
    // range.
    BagRange without_evidence(BagIndex from, BagIndex to, BagState state, ClassId c) NUMALLOC_REQUIRES(lock_);
    // Times the first touch of a run that is about to be handed out. A caller that never touches its run gets one to
    // four resident huge pages for each sample.
    void sample_cost(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    std::uint32_t advice_changes_ NUMALLOC_GUARDED_BY(lock_) = 0;

private:
    // What the samples of a big object show (evidence.cpp).
    enum class Use { dense, sparse, unknown };
    struct Sampled {
        BagRange decides{}, part{};
    };

    BagRange stretch_of(BagIndex b) const NUMALLOC_REQUIRES(lock_);
    BagRange huge_pages_in(BagIndex first, BagIndex end) const;
    bool may_mark(BagRange range, bool normal, std::uint32_t most_changes) const NUMALLOC_REQUIRES(lock_);
    Sampled sampled(BagIndex run) const;
    Use use_of(BagRange range, bool is_normal) const;
    BagRange count_untouched(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);
    bool time_touch(BagIndex b, Bytes own) NUMALLOC_EXCLUDES(lock_);
};

}  // namespace numalloc
