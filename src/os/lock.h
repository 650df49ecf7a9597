// A mutex of one word: an uncontended lock and unlock are one atomic each; a contended one
// spins briefly and then sleeps in the kernel, so that a preempted holder costs no time slice.
//
// Order: a thread takes locks in ascending rank only; debug builds check it, and the fork
// handlers walk the same ranks.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

// One table of all locks, outermost first.
enum class LockRank : std::uint8_t {
    initialise,   // once per process
    threads,      // registry of threads and their affinity
    thread_pool,  // opening nodes, attaching and detaching threads; one per process
    outbox,       // a thread's remote frees
    bound_heap,   // a program's own heap
    size_class,   // a share of a node's bags of one class, and its ring
    extents,      // a node's bags and big objects
    metadata,     // a node's metadata pages
    count
};

class LockWord {
public:
    LockWord() = default;
    LockWord(const LockWord&) = delete;
    LockWord& operator=(const LockWord&) = delete;

protected:
    bool try_acquire() {
        std::uint32_t expected = 0;
        return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
    }
    void acquire() {
        if (!try_acquire()) acquire_contended();
    }
    void release() {
        if (word_.exchange(0, std::memory_order_release) == 2) wake();
    }
    void reset() { word_.store(0, std::memory_order_relaxed); }

#if defined(NUMALLOC_CHECKS)
    static void before_lock(LockRank rank);
    static void after_unlock(LockRank rank);
#else
    static void before_lock(LockRank) {}
    static void after_unlock(LockRank) {}
#endif

private:
    void acquire_contended();
    void wake();

    std::atomic<std::uint32_t> word_{0};  // 0 free, 1 held, 2 held and somebody sleeps
};

// The rank is no part of its memory: a zero page is full of free locks.
template <LockRank rank>
class Lock : public LockWord {
public:
    void lock() {
        before_lock(rank);
        acquire();
    }
    bool try_lock() {
        if (!try_acquire()) return false;
        before_lock(rank);
        return true;
    }
    void unlock() {
        after_unlock(rank);
        release();
    }
    // In the child of a fork: whoever held or awaited it is gone.
    void reset_after_fork() {
        after_unlock(rank);
        reset();
    }
};

template <class AnyLock>
class [[nodiscard]] Guard {
public:
    explicit Guard(AnyLock& lock) : lock_(lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    AnyLock& lock_;
};

}  // namespace numalloc::os
