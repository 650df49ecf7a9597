// Returns free memory to the system: what is due by purge_rule.h.
//
//   pick      cuts out a piece, or the end of one: no thread takes it or merges with it; or
//   set_aside the same for a long run that is being freed (dirty_limit.h)
//   discard   calls the kernel, without the page heap's locks
//   finish    makes the range free again: clean or, if the kernel refused, stuck
//
// A freed run or purge(false) purges up to 8 MiB of what is due, and a run of more than 4 MiB up to twice its length;
// the next ones do the rest. (One free may empty several bags: each is a run.) purge(true) purges all free runs.
#pragma once

#include <atomic>

#include "heap/pages/purge_rule.h"
#include "heap/pages/top.h"

namespace numalloc {

class Purger : public Top {
public:
    // Returns to the OS a bounded part of what is due or, with `all`, everything that is free. The result is the number
    // of dirty bytes that were returned.
    Bytes purge(bool all) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // Returns pages of a bag in use to the OS; they read as zero afterwards. false if the OS refuses: some may be gone
    // then. Only if returns_pages(). `rested`: as in PurgeRule::Due.
    bool return_pages(void* p, Bytes bytes, bool rested) NUMALLOC_EXCLUDES(lock_);

    // How long memory stays free before it is purged, from now on: PageHeapOptions::purge_delay.
    void set_purge_delay(std::int32_t delay) NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        rule_.set_delay(delay);
        free_.set_together(rule_.together());
    }

    // The number of threads that the heap serves now, which decides how much it keeps for them.
    void set_threads(std::uint32_t threads) { threads_.store(threads, std::memory_order_relaxed); }

protected:
    // A range that is being purged: marked as allocated, so that no thread takes it or merges it with a free run.
    struct Purging {
        BagIndex first;
        std::uint32_t bags = 0;
        std::uint32_t dirty = 0;  // of these, may hold other than zeros
        bool rested = false;      // as in PurgeRule::Due
        bool at_once = false;     // was just freed, and not free before: DirtyLimit does not count it
        // Others use the rest of the huge page that the range begins or ends in.
        bool breaks_first = false, breaks_last = false;
    };
    // Cuts out the range that is due first: `most` bags, or a few more up to whole huge pages; 0 bags if nothing is
    // due. Pass it to purge_picked() once lock_ is released: until then the range counts as allocated.
    [[nodiscard]] Purging pick(std::uint32_t most, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    // The same for a run in use that is freed and goes at once (DirtyLimit::on_give()).
    [[nodiscard]] Purging set_aside(BagIndex run, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    // Purges `range`, from one of these, and then what else is due, up to `most` dirty bags. Then unmaps a clean end of
    // the heap. Returns the number of dirty bags that were returned.
    std::uint32_t purge_picked(Purging range, std::uint32_t most) NUMALLOC_EXCLUDES(growth_lock_, lock_);

    // For a request that found no memory: the number of ranges that were purged so far, and whether there is one more
    // since. Waits for one in progress: at most `sleeps` times (os/brief_wait.h), each call costs one.
    std::uint32_t purged_ranges() const { return ended_.load(std::memory_order_seq_cst); }
    bool purged_more_than(std::uint32_t ranges, std::uint32_t& sleeps);

    alignas(64) PurgeRule rule_ NUMALLOC_GUARDED_BY(lock_);

private:
    // The result of discard().
    enum class Discarded { done, refused, lost };

    Purging cut_end(BagIndex piece, std::uint32_t bags) NUMALLOC_REQUIRES(lock_);
    Purging cut_range(BagIndex run, BagRange part, BagIndex near) NUMALLOC_REQUIRES(lock_);
    Purging begin(BagRange part, std::uint32_t dirty) NUMALLOC_REQUIRES(lock_);
    Discarded discard(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    void finish(const Purging& range, Discarded how, std::uint32_t now) NUMALLOC_REQUIRES(lock_);
    void break_huge_pages(const Purging& range) NUMALLOC_EXCLUDES(lock_);
    BagRange shared_huge_page(BagIndex run, bool at_end) const NUMALLOC_REQUIRES(lock_);
    void purge_beside_used() NUMALLOC_EXCLUDES(lock_);
    void retry_stuck() NUMALLOC_EXCLUDES(lock_);

    std::atomic<std::uint32_t> threads_{1};  // read and written without the lock
    // Ranges that were cut out, and that are free again or lost; written under the lock.
    std::atomic<std::uint32_t> begun_{0}, ended_{0};
    std::atomic<std::uint32_t> waited_in_vain_{0};  // 1 + ended_ when a request last waited so; 0: never
};

}  // namespace numalloc
