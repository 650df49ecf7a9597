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
    size_class,   // a node's ring and bags of one class
    extents,      // a node's bags and big objects
    metadata,     // a node's metadata pages
    count
};

class Lock {
public:
    explicit constexpr Lock(LockRank rank) : rank_(rank) {}
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    void lock() {
        std::uint32_t expected = 0;
        before_lock();
        if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) lock_contended();
    }
    bool try_lock() {
        std::uint32_t expected = 0;
        if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) return false;
        before_lock();
        return true;
    }
    void unlock() {
        after_unlock();
        if (word_.exchange(0, std::memory_order_release) == 2) wake();
    }
    // In the child of a fork: whoever held or awaited it is gone.
    void reset_after_fork() {
        after_unlock();
        word_.store(0, std::memory_order_relaxed);
    }

private:
#if defined(NUMALLOC_CHECKS)
    void before_lock();
    void after_unlock();
#else
    void before_lock() {}
    void after_unlock() {}
#endif
    void lock_contended();
    void wake();

    std::atomic<std::uint32_t> word_{0};  // 0 free, 1 held, 2 held and somebody sleeps
    [[maybe_unused]] LockRank rank_;  // debug builds check it
};

class [[nodiscard]] Guard {
public:
    explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    Lock& lock_;
};

}  // namespace numalloc::os
