// Decides which free memory of a node is due to be purged: what was free for purge_delay, and younger memory of which
// dirty_limit.h says that it is too much. Nothing is due with purge_delay=-1, nor within policy::purge::refusal_lasts
// of a refusal by the kernel (after mlockall, say), because every free would make a system call that fails.
//
//   on_take, on_give      runs come into use and become free
//   due                   how much of the oldest dirty piece to purge now
//   on_answer, on_purge   the kernel refused pages or not; pages were purged
//
// Does not know where the memory is: purger.cpp cuts it out, calls the kernel and frees it again.
//
// Invariants:
//   a piece that was free for purge_delay is due as a whole; of others DirtyLimit::due() and policy::purge::beyond_due.
//   Purger::pick() cuts that to what one call may purge, and rounds it to pages or whole huge pages
//   on_purge() is called once for each purge of free memory, so that DirtyLimit counts each bag as purged early or late
//
// Not thread-safe: the page heap's lock guards it. Counts are in bags, times in milliseconds.
#pragma once

#include "heap/pages/dirty_limit.h"
#include "heap/space/bag.h"

namespace numalloc {

namespace policy::purge {

// Pieces freed within 1/8 of purge_delay of each other become one: fewer pieces, and nearly the right age.
constexpr std::int32_t together_part = 8;
// A purge takes 1 MiB more than is due: this saves system calls, and costs at most that much of what may stay.
constexpr Bytes beyond_due = 1 * MiB;
// A freed run purges at most 8 MiB, for a short time in the kernel, or twice its length, so that purging keeps up.
constexpr Bytes a_call = 8 * MiB;
constexpr std::uint32_t for_freed = 2;
// malloc_trim() purges free runs 64 MiB at a time, because a fork waits for each.
constexpr Bytes all_at_once = 64 * MiB;
// Milliseconds without another try after the kernel refused to take pages (mlockall): one failed call a second is
// cheap.
constexpr std::uint32_t refusal_lasts = 1000;

}  // namespace policy::purge

class PurgeRule {
public:
    struct Due {
        std::uint32_t bags = 0;
        bool rested = false;  // was free for purge_delay; else it is purged early
    };

    // PageHeapOptions::purge_delay. May be called again later.
    void set_delay(std::int32_t delay) {
        delay_ = delay;
        limit_.start(delay);
    }
    // Pieces that became free within this many milliseconds of each other become one.
    std::uint32_t together() const {
        return static_cast<std::uint32_t>(max_of(delay_, 0) / policy::purge::together_part);
    }

    // Most bags that a call of the allocator purges after it freed `freed` bags.
    static constexpr std::uint32_t most_after(std::uint32_t freed) {
        return max_of(bags_in(policy::purge::a_call), policy::purge::for_freed * freed);
    }

    // Whether nothing is due now, whatever is free.
    bool pauses(std::uint32_t now) const {
        return delay_ < 0 || (refused_ && now - refused_at_ < policy::purge::refusal_lasts);
    }
    // How much of the piece that has been free for the longest time is due; 0 bags: nothing is. Not while pauses().
    // `dirty`, `in_use`: the node's bags; `threads`: how many threads the heap serves.
    Due due(const Bag::Free& oldest, std::uint32_t dirty, std::uint64_t in_use, std::uint32_t threads,
            std::uint32_t now) const {
        if (now - oldest.since >= static_cast<std::uint32_t>(delay_)) return {oldest.length, true};
        const std::uint32_t excess = limit_.due(dirty, in_use, threads, now);
        return {excess == 0 ? 0 : excess + bags_in(policy::purge::beyond_due), false};
    }

    // The kernel answered to a purge.
    void on_answer(bool refused, std::uint32_t now) {
        refused_ = refused;
        if (refused) refused_at_ = now;
    }
    // Pages were purged; `rested` as in Due.
    void on_purge(std::uint32_t dirty, bool rested, std::uint32_t now) {
        if (rested) limit_.on_late_purge(dirty);
        else limit_.on_early_purge(dirty, now);
    }

    // The same as DirtyLimit's.
    std::uint32_t on_take(unsigned kind, std::uint32_t bags, std::uint32_t clean, std::uint64_t in_use,
                          std::uint32_t now) {
        return limit_.on_take(kind, bags, clean, in_use, now);
    }
    // The same, but false while pauses().
    [[nodiscard]] bool on_give(unsigned kind, std::uint32_t bags, bool fresh, std::uint32_t now) {
        return limit_.on_give(kind, bags, fresh, now) && !pauses(now);
    }

private:
    std::int32_t delay_ = 0;
    std::uint32_t refused_at_ = 0;  // when the kernel last refused to take pages
    bool refused_ = false;          // it refused the last ones
    DirtyLimit limit_;
};

}  // namespace numalloc
