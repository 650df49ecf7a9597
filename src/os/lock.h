// A mutex of one word. An uncontended lock or unlock is one atomic operation on it. A contended lock spins briefly and
// then sleeps in the kernel, so that waiters do not burn a time slice while the holder is preempted.
//
// Order: a thread takes locks in ascending rank only, and a second one of a rank by try_lock(); debug builds check it.
// A fork takes none of the heap's locks: it waits until no thread holds one (fork_gate.h). A PassingLock, which is
// placement's, may be held: a fork tries to take it for a moment, and goes on without it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.h"
#include "base/thread_safety.h"
#include "os/counts.h"
#include "os/fork_gate.h"

namespace numalloc::os {

// All locks, outermost first. counts.def begins with the same list.
enum class LockRank : std::uint8_t {
    initialise,    // once per process
    threads,       // registry of threads and their affinity
    deferred,      // the list of deferred work, while a record is taken from it
    thread_pool,   // opening nodes (one per process), attaching threads (one per node)
    remote_cache,  // a thread's remote cache
    bound_heap,    // a program's own heap
    size_class,    // a shard's list of bags, of one class on one node
    growth,        // the end of a node's mapped memory
    pages,         // a node's free bags
    metadata,      // the slots of a node's thread heaps
    profile,       // the heap profile's records, the slots of guarded objects
    count
};

class LockWord {
public:
    LockWord() = default;
    LockWord(const LockWord&) = delete;
    LockWord& operator=(const LockWord&) = delete;

    // Whether the lock was free at some moment of this call. If so, its last holder's writes are visible.
    bool is_free() const { return is_free(word_.load(std::memory_order_acquire)); }

protected:
    bool try_acquire() {
        std::uint32_t expected = 0;
        return word_.compare_exchange_strong(expected, fork_gate.held(), std::memory_order_acquire);
    }
    void acquire() {
        const bool outermost = fork_gate.enter();
        if (NUMALLOC_UNLIKELY(!try_acquire())) acquire_contended();
        // A thread that was inside already passes: the fork waits for it.
        if (NUMALLOC_UNLIKELY(outermost) && fork_gate.stops()) acquire_after_fork();
    }
    bool acquire_if_free() {
        fork_gate.enter();
        if (try_acquire() || try_acquire_left_behind()) {
            if (NUMALLOC_LIKELY(!fork_gate.stops())) return true;
            give_back();
        }
        fork_gate.leave();
        return false;
    }
    // For a caller that passes the gate. Sleeps at most `sleeps` times, a millisecond each.
    bool acquire_within(std::uint32_t sleeps);
    void release() {
        give_back();
        fork_gate.leave();
    }

#if defined(NUMALLOC_CHECKS)
    static void check_order(LockRank rank, bool waits);
    static void after_unlock(LockRank rank);
    static void check_held(LockRank rank);
#else
    static void check_order(LockRank, bool) {}
    static void after_unlock(LockRank) {}
    static void check_held(LockRank) {}
#endif

private:
    void give_back() {
        if (NUMALLOC_UNLIKELY((word_.exchange(0, std::memory_order_release) & awaited) != 0)) wake();
    }
    bool is_free(std::uint32_t word) const { return word == 0 || word >> 2 != fork_gate.generation(); }
    // In a fork's child: a lock that a thread of the parent held at the clone.
    bool try_acquire_left_behind() {
        std::uint32_t word = word_.load(std::memory_order_relaxed);
        return is_free(word) && word_.compare_exchange_strong(word, fork_gate.held(), std::memory_order_acquire);
    }
    void acquire_contended();
    void acquire_after_fork();
    void wake();

    static constexpr std::uint32_t awaited = 2;
    // 0: free. Otherwise generation << 2 | 1, and | 2 if a thread sleeps. A word of an earlier generation is free.
    std::atomic<std::uint32_t> word_{0};
};

static_assert(static_cast<unsigned>(LockRank::count) == static_cast<unsigned>(Count::failed_try_locks),
              "counts.def begins with the ranks");

// The rank takes no memory, and zeroed memory is a free lock.
template <LockRank rank>
class NUMALLOC_LOCK Lock : public LockWord {
public:
    void lock() NUMALLOC_ACQUIRES() {
        check_order(rank, true);
        acquire();
        count_lock(static_cast<unsigned>(rank));
    }
    bool try_lock() NUMALLOC_TRIES_TO_ACQUIRE(true) {
        if (!acquire_if_free()) {
            count(Count::failed_try_locks);
            return false;
        }
        check_order(rank, false);
        count_lock(static_cast<unsigned>(rank));
        return true;
    }
    // Only for PassingLock.
    bool lock_within(std::uint32_t sleeps) NUMALLOC_TRIES_TO_ACQUIRE(true) {
        if (!acquire_within(sleeps)) return false;
        check_order(rank, false);
        count_lock(static_cast<unsigned>(rank));
        return true;
    }
    void unlock() NUMALLOC_RELEASES() {
        after_unlock(rank);
        count_unlock(static_cast<unsigned>(rank));
        release();
    }
    // Tells clang that the caller holds the lock where it cannot see that: in a lambda, or if the lock is chosen at run
    // time. Debug builds check that the thread holds a lock of this rank.
    void assert_held() const NUMALLOC_ASSERTS_HELD(this) { check_held(rank); }
};

// A lock that passes the gate (PassesGate): in a fork's child what it guards may be half changed, and is made anew.
template <LockRank rank>
class NUMALLOC_LOCK PassingLock {
public:
    void lock() NUMALLOC_ACQUIRES() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        PassesGate::begin();
        lock_.lock();
    }
    // false if that takes more than `sleeps` sleeps of a millisecond.
    bool lock_within(std::uint32_t sleeps) NUMALLOC_TRIES_TO_ACQUIRE(true) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        PassesGate::begin();
        if (lock_.lock_within(sleeps)) return true;
        PassesGate::end();
        return false;
    }
    void unlock() NUMALLOC_RELEASES() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        lock_.unlock();
        PassesGate::end();
    }

private:
    Lock<rank> lock_;
};

template <class AnyLock>
class [[nodiscard]] NUMALLOC_SCOPED_LOCK Guard {
public:
    explicit Guard(AnyLock& lock) NUMALLOC_ACQUIRES(lock) : lock_(lock) { lock_.lock(); }
    ~Guard() NUMALLOC_RELEASES() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    AnyLock& lock_;
};

}  // namespace numalloc::os
