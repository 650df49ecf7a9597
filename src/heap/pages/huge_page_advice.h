// Which bags of a node may have huge pages. BagMark::normal marks those that are advised against them; madvise() is
// called without the lock, so the advice may lag behind the mark.
//
//   huge_page_advice.cpp  broken huge pages, and those that are dear just now (huge_page_touches.h times first touches)
//   evidence.cpp          big objects have them where memory was densely used
//
// Invariants:
//   advice_changes_ == number of bags b, first_bag < b < committed, whose BagMark::normal differs from that of b - 1
//   evidence does not raise it above PageHeapOptions::most_advice_changes (broken huge pages may: one change or two for
//   each 64 MiB)
#pragma once

#include "heap/pages/node_bags.h"

namespace numalloc {

class HugePageAdvice : public NodeBags {
public:
    // Binds and advises bags in use like the rest of the region, after their mapping was changed.
    void settle(BagIndex first, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    // Finds out how a big object is used that is about to be freed or moved (evidence.cpp). Returns whether densely;
    // false also if that is unknown. Only for the object's owner.
    bool learn_from(BagIndex run) NUMALLOC_EXCLUDES(lock_);

    // Whether returning pages of the bag may break up a huge page.
    bool breaks_huge_page(BagIndex b) const { return may_be_huge(b) && region_.count(BagMark::normal, b, 1) == 0; }

    // Times the first touch of a huge page of a run that PageHeap::take_small_at_once() returned. Call it once no lock
    // is held. The first `own` bytes are the caller's.
    void sample_cost_of_small(BagIndex run, std::uint32_t bags, Bytes own) NUMALLOC_EXCLUDES(lock_);

protected:
    static constexpr std::uint32_t huge_bags = static_cast<std::uint32_t>(os::huge_page / bag_bytes);

    bool may_be_huge(BagIndex b) const { return options_.huge_pages && b >= region_.huge_from(); }

    // Marks bags as normal or huge, and sets the end of the mapped memory, whose marks must be written.
    void set_normal(BagRange range, bool on) NUMALLOC_REQUIRES(lock_);
    void set_committed(std::uint64_t end) NUMALLOC_REQUIRES(lock_);
    // Advises each stretch of the range as it is marked; `settled`: the huge ones are advised already.
    void advise_as_marked(BagRange range, bool settled);

    // Part of the huge page that holds the bag is returned: its stretch becomes normal.
    void no_more_huge(BagIndex b) NUMALLOC_EXCLUDES(lock_);
    // The stretches within the free run that are about to be taken in part; clears their BagMark::normal. Empty if
    // there is nothing to advise. Then, without the lock, huge_again() advises them.
    BagRange whole_stretches(BagIndex run, BagIndex first, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    void huge_again(BagRange range) NUMALLOC_EXCLUDES(lock_);
    // Whether newly mapped bags stay on normal pages; advises so.
    bool leave_normal(BagIndex from, BagIndex to);
    // Marks the huge pages of never used bags [from, to) as normal, if they are about to be a big object's. Returns
    // what to advise.
    BagRange without_evidence(BagIndex from, BagIndex to, BagState state) NUMALLOC_REQUIRES(lock_);
    // Times the first touch of a run that is about to be handed out. A caller that never touches its run gets one to
    // four resident huge pages for each sample.
    void sample_cost(BagIndex run, std::uint32_t bags) NUMALLOC_EXCLUDES(lock_);

    HugePageTouches touches_;
    std::uint32_t advice_changes_ NUMALLOC_GUARDED_BY(lock_) = 0;

private:
    // What the samples of a big object show (evidence.cpp).
    enum class Use { dense, sparse, unknown };
    struct Sampled {
        BagRange decides{}, part{};
    };

    BagRange stretch_of(BagIndex b) const NUMALLOC_REQUIRES(lock_);
    BagRange huge_pages_in(BagIndex first, BagIndex end) const;
    bool may_mark(BagRange range, bool normal) const NUMALLOC_REQUIRES(lock_);
    Sampled sampled(BagIndex run) const;
    Use use_of(BagRange range, bool is_normal) const;
    BagRange count_untouched(BagIndex run, std::uint32_t bags);
    bool time_touch(BagIndex b, Bytes own) NUMALLOC_EXCLUDES(lock_);
};

}  // namespace numalloc
