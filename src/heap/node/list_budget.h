// The bytes of a node's budget that its threads' lists share, first come, first served. In addition each thread may
// hold policy::lists::any_may_hold bytes.
//
//   running == min(threads, CPUs that the node's threads were seen on)      cpus_seen.h
//   limit == max(20 MiB, min(2 MiB * running, in_use / 4), in_use / 32)
//   sum of all threads' grants <= limit   when a grant is made; the limit may fall later
//   share == limit / threads              rounded down to whole grants
//
// A refused thread that has less than a share marks the budget short. The next thread that finds the mark and has more
// than a share returns the excess, at a slow path of its own. When the limit fell, threads with more than a share
// return what is granted above it.
//
// Thread-safe and lock-free.
#pragma once

#include <atomic>

#include "heap/node/cpus_seen.h"
#include "heap/space/policy.h"

namespace numalloc {

namespace policy::lists {

// What a node's lists may hold in any case. With less, a few busy threads flush lists and refill them immediately.
constexpr Bytes any_node_may_hold = 20 * MiB;
// For each thread that can run at a time 2 MiB; with less, 64 threads that replace objects of 4 to 32 KiB at random
// take a lock every other time. But no more than a quarter of what is in use: threads that wait keep what they hold.
constexpr Bytes for_each_running = 2 * MiB;
constexpr Fraction of_in_use_for_running{1, 4};
// While much is in use, this part of it, for any number of threads.
constexpr Fraction of_in_use{1, 32};
#if defined(NUMALLOC_COUNTING)
// On any machine contention is counted as on a node of 64 CPUs.
constexpr std::uint32_t made_up_cpus = 64;
#else
constexpr std::uint32_t made_up_cpus = 0;
#endif

}  // namespace policy::lists

class ListBudget {
public:
    // Adds one grant to a thread's `granted` bytes. Returns its new total, which is `granted` if the budget is
    // exhausted.
    Bytes grant(Bytes granted, std::uint32_t threads) {
        const Bytes limit = limit_for(threads);
        // A plain load first: when the budget is exhausted, refused threads need not write to the shared line.
        if (granted_.load(std::memory_order_relaxed) + policy::lists::grant <= limit) {
            if (granted_.fetch_add(policy::lists::grant, std::memory_order_relaxed) + policy::lists::grant <= limit)
                return granted + policy::lists::grant;
            take_back(policy::lists::grant);
        }
        if (granted < share_of(limit, threads) && !is_short_.load(std::memory_order_relaxed))
            is_short_.store(true, std::memory_order_relaxed);
        return granted;
    }
    // Returns how many of its `granted` bytes a thread may keep. Clears the mark if they are fewer.
    Bytes kept(Bytes granted, std::uint32_t threads) {
        const Bytes limit = limit_for(threads);
        const Bytes share = share_of(limit, threads);
        if (granted <= share) return granted;
        if (is_short_.load(std::memory_order_relaxed)) {
            is_short_.store(false, std::memory_order_relaxed);
            return share;
        }
        const Bytes all = granted_.load(std::memory_order_relaxed);
        const Bytes above = all > limit ? align_up(all - limit, policy::lists::grant) : 0;
        return granted - min_of(above, granted - share);
    }
    void take_back(Bytes bytes) { granted_.fetch_sub(bytes, std::memory_order_relaxed); }

    // A thread of the node runs on this CPU. Negative: unknown.
    void saw(int cpu) { cpus_.saw(cpu); }
    void set_in_use(Bytes bytes) { in_use_.store(bytes, std::memory_order_relaxed); }
    // In the child of a fork: `kept` bytes are the grant of its only thread.
    void leave_behind(Bytes kept) {
        granted_.store(kept, std::memory_order_relaxed);
        cpus_.forget();
    }

private:
    Bytes limit_for(std::uint32_t threads) const {
        using namespace policy::lists;
        const Bytes in_use = in_use_.load(std::memory_order_relaxed);
        const std::uint32_t running = min_of(threads, made_up_cpus != 0 ? made_up_cpus : cpus_.count());
        const Bytes of_running = min_of(running * for_each_running, of_in_use_for_running.part_of(in_use));
        return max_of(max_of(any_node_may_hold, of_running), of_in_use.part_of(in_use));
    }
    static Bytes share_of(Bytes limit, std::uint32_t threads) {
        return align_down(limit / max_of(threads, 1U), policy::lists::grant);
    }

    std::atomic<Bytes> granted_{0};
    std::atomic<Bytes> in_use_{0};
    std::atomic<bool> is_short_{false};
    CpusSeen cpus_;
};

}  // namespace numalloc
