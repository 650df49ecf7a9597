// A fork takes none of the heap's locks: it closes a gate. Threads that hold locks finish first; no other thread
// enters. (Placement's lock passes the gate, and a fork tries to take it: os/lock.h, placement/user_affinity.cpp.)
//
//   a thread that takes a lock          the thread that forks
//     set the mark: inside                close the gate
//     acquire the lock                    for every mark: wait until outside
//     gate closed? release it, wait       clone()
//
// The atomic operation on the lock lies between setting the mark and reading the gate, so at least one of the two
// threads sees the other. At the clone no thread is in the middle of a change under a lock of the heap, and the fork
// has only read the marks.
//
// The child starts a new generation. A lock's word holds the generation in which it was acquired; a lock that has been
// held since an earlier generation (by a thread that was about to release it at the gate) counts as free. So nothing
// needs to be reset.
//
// The gate does not stop the thread that closed it: other pthread_atfork() handlers may run after ours in the parent,
// or before ours in the child, and may allocate.
//
// After our prepare handler libc's fork() acquires locks of others, in this order: those of prepare handlers registered
// before ours; then, if the process has several threads, those of the name service (glibc 2.33 and later), popen's list
// (glibc's sources of 2025), the list of streams, and libc's own malloc. A thread that waited at the gate while holding
// one of these would deadlock with the fork. So malloc and free enter with try_enter_with(), which does not wait, or
// with Inside, which waits 10 ms at most; then they use the side heap (heap/space/side.h).
//
// tests/models/fork_gate.pml is a model of marks, locks and the gate. It has no shared mark, no change of marks, no
// brief waits, no generations and no sleepers.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/bits.h"

namespace numalloc::os {

// Whether a thread holds locks. Lies where the forking thread can find it.
struct LockMark {
    std::atomic<std::uint32_t> inside{0};
};

// The calling thread's state at the gate.
struct LockHolder {
    std::uint32_t depth = 0;       // locks that it holds or is about to take
    LockMark* mark = nullptr;      // its own; nullptr: the mark shared by all threads without one
    std::uint32_t libc_calls = 0;  // in progress: libc_call.h
    std::uint32_t waited = 0;      // 1 + ForkGate::opened_ at the last fork that it waited for briefly
    bool shares = false;           // counted in the shared mark
};
extern NUMALLOC_THREAD_LOCAL LockHolder lock_holder;

class ForkGate {
public:
    // Called first by the thread that forks. Waits for another fork to finish, and for the threads that share a mark.
    void close();
    // If waits() is true and threads have marks of their own, the caller then waits for the sharers and for each mark,
    // again until mark_changes() stays the same, because a thread may change its mark. waits() is false in a signal
    // handler that interrupted the heap: a thread inside may wait for a lock that the interrupted code holds. The child
    // of such a fork may call only async-signal-safe functions, so the state of its heap does not matter.
    static bool waits() { return lock_holder.depth == 0; }
    void wait_for_sharers();
    void wait_for(const LockMark& mark);
    // The same for a fork that must not wait long. `sleeps`: how often it may still sleep (brief_wait.h). false if that
    // is not enough; after try_close() the gate is as before.
    bool try_close(std::uint32_t& sleeps);
    bool wait_for_sharers(std::uint32_t& sleeps);
    static bool wait_for(const LockMark& mark, std::uint32_t& sleeps);
    std::uint32_t mark_changes() const { return mark_changes_.load(std::memory_order_seq_cst); }
    // In the parent, or if no fork happened after all.
    void open();
    // In the child: starts a new generation. The gate stays closed until open(), because other fork handlers may have
    // started threads.
    void become_child();

    // Called before everything else, by the thread that initialises the library.
    void start();
    // Whether the caller is in the process whose ID was recorded last, and not in the child of a vfork or a raw clone.
    // Makes a system call; false after a filter.
    bool is_process() const;

    // Number of forks between the first process and this one.
    std::uint32_t generation() const { return held_ >> 2; }
    // The word of a lock that is held: see lock.h.
    std::uint32_t held() const { return held_; }

    // Returns whether the caller was outside.
    bool enter() {
        LockHolder& self = lock_holder;
        const bool outermost = self.depth++ == 0;
        if (NUMALLOC_UNLIKELY(outermost)) mark(self, 1);
        return outermost;
    }
    // Returns false if the caller would have to wait.
    bool try_enter() {
        LockHolder& self = lock_holder;
        if (self.depth++ != 0) return true;
        // Not mark(): no atomic operation on a lock follows that could be the barrier.
        if (self.mark != nullptr) self.mark->inside.exchange(1, std::memory_order_seq_cst);
        else share(1);
        if (!stops()) return true;
        leave();
        return false;
    }
    // The fast path of try_enter(), for the owner of the mark. Also false if the thread is inside already or has closed
    // the gate.
    bool try_enter_with(LockMark& own) {
        if (NUMALLOC_UNLIKELY(lock_holder.depth != 0)) return false;
        lock_holder.depth = 1;
        own.inside.exchange(1, std::memory_order_seq_cst);
        if (NUMALLOC_LIKELY(!is_closed())) return true;
        leave_with(own);
        return false;
    }
    void leave_with(LockMark& own) {
        own.inside.store(0, std::memory_order_release);
        lock_holder.depth = 0;
    }
    void leave() {
        // Clears the mark first: a signal may interrupt here, and its handler may fork.
        LockHolder& self = lock_holder;
        if (self.depth == 1) mark(self, 0);
        --self.depth;
    }
    // For a thread inside that holds no lock and calls abort(): a handler of SIGABRT may go on by siglongjmp().
    void leave_altogether() {
        LockHolder& self = lock_holder;
        if (self.mark != nullptr) mark(self, 0);
        else if (self.shares) share(0);
        self.depth = 0;
    }
    bool is_closed() const { return owner_.load(std::memory_order_seq_cst) != nullptr; }
    // Whether the calling thread must release the lock that it has just acquired, because the gate closed before.
    bool stops() const { return owner_.load(std::memory_order_seq_cst) != nullptr && stops_caller(); }
    // Sets the calling thread's mark; nullptr: the shared one.
    void change_mark(LockMark* mark);
    // Sleeps until the gate opens, 100 ms at most.
    void wait();
    // The same for at most 10 ms, and once per fork. Returns whether the gate is open. If not, the next wait is half as
    // long, down to 100 us; else twice as long.
    bool wait_briefly();
    // Microseconds for which wait_briefly() would wait.
    std::uint32_t patience() const { return patience_.load(std::memory_order_relaxed); }
    // Called when a lock is held: in a child whose own fork handler has not run yet, starts the new generation, so that
    // locks held by threads of the parent count as free.
    void notice_child();

private:
    // false if another thread has closed the gate.
    bool become_owner();
    void mark(const LockHolder& self, std::uint32_t inside) {
        if (self.mark != nullptr) {
            self.mark->inside.store(inside, std::memory_order_release);
#if defined(__x86_64__)
            // The atomic operation on the lock is the barrier.
            std::atomic_signal_fence(std::memory_order_seq_cst);
#else
            if (inside != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
        } else {
            share(inside);
        }
    }
    void share(std::uint32_t inside) {
        lock_holder.shares = inside != 0;
        if (inside != 0) shared_.inside.fetch_add(1, std::memory_order_seq_cst);
        else lower(shared_.inside);
    }
    // In a child the counts begin anew. A thread that another handler has started there before may be counted still.
    static void lower(std::atomic<std::uint32_t>& count) {
        std::uint32_t now = count.load(std::memory_order_relaxed);
        while (now != 0 && !count.compare_exchange_weak(now, now - 1, std::memory_order_seq_cst)) {}
    }
    bool mine() const { return owner_.load(std::memory_order_relaxed) == &lock_holder; }
    bool stops_caller() const;
    // Sleeps while opened_ is `before`, at most `longest`.
    void sleep(std::uint32_t before, const timespec& longest);
    // The calling thread's share of the shared mark: a signal may have interrupted it inside.
    static std::uint32_t own_part() { return lock_holder.shares ? 1 : 0; }

    std::atomic<LockHolder*> owner_{nullptr};  // the thread that closed the gate; nullptr: open
    std::atomic<std::uint32_t> opened_{0};     // how often it was opened; sleepers wait for a change
    std::uint32_t held_ = 1;                   // generation << 2 | 1
    int process_ = 0;                          // process ID at start(), close() and become_child()
    int nested_ = 0;                           // forks by the owner's own handlers

    // Written when threads start and end, so on another cache line than the members above, which every lock reads.
    alignas(64) LockMark shared_;
    std::atomic<std::uint32_t> mark_changes_{0};  // by threads that were inside
    std::atomic<std::uint32_t> sleepers_{0};      // threads in sleep()
    static constexpr std::uint32_t most_patience = 10'000;
    std::atomic<std::uint32_t> patience_{most_patience};  // microseconds for which wait_briefly() waits
};

extern constinit ForkGate fork_gate;

// Makes `mark` the calling thread's own; nullptr: the thread uses the shared one again.
inline void use_lock_mark(LockMark* mark) { fork_gate.change_mark(mark); }

// Enters the gate for calls that must not wait long. While an Inside is true, the thread may take any lock.
class [[nodiscard]] Inside {
public:
    // False also within a LibcCall (libc_call.h).
    Inside()
        : in_(lock_holder.libc_calls == 0 &&
              (fork_gate.try_enter() || (fork_gate.wait_briefly() && fork_gate.try_enter()))) {}
    ~Inside() {
        if (in_) fork_gate.leave();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    explicit operator bool() const { return NUMALLOC_LIKELY(in_); }

private:
    bool in_;
};

// For a call of which the child of a fork must have all or nothing: waits for a fork in progress, and a later fork
// waits for the end of the call. The thread may be inside already.
class [[nodiscard]] NoFork {
public:
    NoFork() {
        while (!fork_gate.try_enter()) fork_gate.wait();
    }
    ~NoFork() { fork_gate.leave(); }
    NoFork(const NoFork&) = delete;
    NoFork& operator=(const NoFork&) = delete;
};

// While it lives, the thread neither waits for a fork when it acquires a lock, nor does a fork wait for it. In the
// child these locks count as free. So what lies under them is only read, or is made anew in the child.
class [[nodiscard]] PassesGate {
public:
    PassesGate() { begin(); }
    ~PassesGate() { end(); }
    PassesGate(const PassesGate&) = delete;
    PassesGate& operator=(const PassesGate&) = delete;

    static void begin() { ++lock_holder.depth; }
    static void end() { --lock_holder.depth; }
};

// For an operation that begins under a lock, goes on after its release, and must not be interrupted by a fork.
class StayInside {
public:
    StayInside() = default;
    // The caller holds a lock.
    void begin() {
        fork_gate.enter();
        begun_ = true;
    }
    ~StayInside() {
        if (begun_) fork_gate.leave();
    }
    StayInside(const StayInside&) = delete;
    StayInside& operator=(const StayInside&) = delete;

private:
    bool begun_ = false;
};

}  // namespace numalloc::os
