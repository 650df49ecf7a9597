// What the lists of a node's threads may hold beyond what each may in any case: so much in all, whoever takes it first.
//
//   granted <= limit, at the time of each grant
//   a thread that was refused and has less than its share, limit / threads, asks for more: one that has more gives the rest back
//   at its own next slow path
//
// Thread-safe, without a lock.
#pragma once

#include <atomic>

#include "heap/space/policy.h"

namespace numalloc {

class ListBudget {
public:
    // One grant more for a thread that has `granted` bytes. How many bytes it has then.
    Bytes grant(Bytes granted, std::uint32_t threads) {
        const Bytes limit = limit_.load(std::memory_order_relaxed);
        // Read first: where nothing is left, threads would take the line from each other for nothing.
        if (granted_.load(std::memory_order_relaxed) + policy::granted_to_lists <= limit) {
            if (granted_.fetch_add(policy::granted_to_lists, std::memory_order_relaxed) + policy::granted_to_lists <= limit)
                return granted + policy::granted_to_lists;
            take_back(policy::granted_to_lists);
        }
        if (granted < share(threads) && !is_short_.load(std::memory_order_relaxed)) is_short_.store(true, std::memory_order_relaxed);
        return granted;
    }
    // What a thread that has more may keep now: all, but where another wants its share.
    Bytes kept(Bytes granted, std::uint32_t threads) {
        if (!is_short_.load(std::memory_order_relaxed) || granted <= share(threads)) return granted;
        is_short_.store(false, std::memory_order_relaxed);
        return share(threads);
    }
    void take_back(Bytes bytes) { granted_.fetch_sub(bytes, std::memory_order_relaxed); }

    void set_in_use(Bytes bytes) { limit_.store(policy::lists_may_hold(bytes), std::memory_order_relaxed); }
    // In the child of a fork, which has one thread.
    void leave_behind(Bytes kept) { granted_.store(kept, std::memory_order_relaxed); }

private:
    Bytes share(std::uint32_t threads) const {
        return align_down(limit_.load(std::memory_order_relaxed) / max_of(threads, 1U), policy::granted_to_lists);
    }

    std::atomic<Bytes> granted_{0};
    std::atomic<Bytes> limit_{policy::lists_may_hold(0)};
    std::atomic<bool> is_short_{false};
};

}  // namespace numalloc
