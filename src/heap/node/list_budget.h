// The bytes of a node's budget that its threads' lists share, first come, first served. In addition each thread may
// hold policy::lists::any_may_hold bytes.
//
//   sum of all threads' grants <= limit   when a grant is made; the limit may fall later
//   share == limit / threads              rounded down to whole grants
//
// A refused thread that has less than a share marks the budget short. The next thread that finds the mark and has more
// than a share returns the excess, at a slow path of its own.
//
// Thread-safe and lock-free.
#pragma once

#include <atomic>

#include "heap/space/policy.h"

namespace numalloc {

namespace policy::lists {

// A node's budget for lists, in bytes, while `in_use` bytes of bags are in use. With a smaller budget busy threads
// flush lists and refill them immediately.
constexpr Bytes all_may_hold(Bytes in_use) { return max_of(20 * MiB, in_use / 32); }

}  // namespace policy::lists

class ListBudget {
public:
    // Adds one grant to a thread's `granted` bytes. Returns its new total, which is `granted` if the budget is
    // exhausted.
    Bytes grant(Bytes granted, std::uint32_t threads) {
        const Bytes limit = limit_.load(std::memory_order_relaxed);
        // A plain load first: when the budget is exhausted, refused threads need not write to the shared line.
        if (granted_.load(std::memory_order_relaxed) + policy::lists::grant <= limit) {
            if (granted_.fetch_add(policy::lists::grant, std::memory_order_relaxed) + policy::lists::grant <= limit)
                return granted + policy::lists::grant;
            take_back(policy::lists::grant);
        }
        if (granted < share(threads) && !is_short_.load(std::memory_order_relaxed))
            is_short_.store(true, std::memory_order_relaxed);
        return granted;
    }
    // Returns how many of its `granted` bytes a thread may keep. Clears the mark if they are fewer.
    Bytes kept(Bytes granted, std::uint32_t threads) {
        if (!is_short_.load(std::memory_order_relaxed) || granted <= share(threads)) return granted;
        is_short_.store(false, std::memory_order_relaxed);
        return share(threads);
    }
    void take_back(Bytes bytes) { granted_.fetch_sub(bytes, std::memory_order_relaxed); }

    void set_in_use(Bytes bytes) { limit_.store(policy::lists::all_may_hold(bytes), std::memory_order_relaxed); }
    // In the child of a fork: `kept` bytes are the grant of its only thread.
    void leave_behind(Bytes kept) { granted_.store(kept, std::memory_order_relaxed); }

private:
    Bytes share(std::uint32_t threads) const {
        return align_down(limit_.load(std::memory_order_relaxed) / max_of(threads, 1U), policy::lists::grant);
    }

    std::atomic<Bytes> granted_{0};
    std::atomic<Bytes> limit_{policy::lists::all_may_hold(0)};
    std::atomic<bool> is_short_{false};
};

}  // namespace numalloc
