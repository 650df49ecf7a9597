// fork() takes no lock: it closes a gate. Whoever is behind it, holding locks, comes out first; nobody else goes in.
//
//   a thread that takes a lock        the thread that forks
//     mark: inside                      gate: closed
//     take the lock                     every mark: wait until outside
//     gate closed? give it back, wait   clone()
//
// The lock's own atomic stands between the mark and the look at the gate, so one of the two sees the other. At the
// moment of the clone no thread has changed anything under a lock, and all that the fork did was to read the marks.
//
// The child goes on in the next generation: a lock says in whose generation it was taken, and what is held since an
// earlier one (by a thread that was on its way back from the gate) counts as free. Nothing has to be reset.
//
// The gate does not stop the thread that closed it: handlers of pthread_atfork() may run after ours in the parent,
// or before ours in the child, and may allocate.
//
// After our prepare handler fork() still takes other locks, in this order: those of prepare handlers registered before
// ours; then, if the process has several threads, the name service's (glibc 2.33 and later), popen's list (glibc's
// sources of 2025), the list of streams, libc's own malloc. A thread that holds one of these and waited at the gate
// would deadlock with the fork. malloc and free therefore enter with Inside, which waits 10 ms at most; then they use
// the side heap (heap/space/side.h). Most forks take less.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.h"

namespace numalloc::os {

// Whether the thread that it belongs to holds locks. Lies where the forking thread finds it.
struct LockMark {
    std::atomic<std::uint32_t> inside{0};
};

// The calling thread's locks.
struct LockHolder {
    std::uint32_t depth = 0;       // how many it holds or is about to take
    LockMark* mark = nullptr;      // its own; nullptr: it shares one with all that have none
    std::uint32_t libc_calls = 0;  // under way: libc_call.h
    std::uint32_t waited = 0;      // 1 + ForkGate::opened_ during the last fork that it waited for briefly
};
extern NUMALLOC_THREAD_LOCAL LockHolder lock_holder;

class ForkGate {
public:
    // By the thread that forks, before anything else. Waits for another fork to finish, and for the threads that share
    // a mark.
    void close();
    // Where threads have marks of their own, then repeat until mark_changes() stays the same: wait for the sharers and
    // for each mark. A thread may move from one mark to another in between. Not by a signal handler that interrupted
    // the heap: a thread inside may wait for a lock that the interrupted code holds. The child of such a fork may call
    // async-signal-safe functions only, so the state of its heap does not matter.
    static bool waits() { return lock_holder.depth == 0; }
    void wait_for_sharers();
    void wait_for(const LockMark& mark);
    std::uint32_t mark_changes() const { return mark_changes_.load(std::memory_order_seq_cst); }
    // In the parent, or where there was no fork in the end.
    void open();
    // In the child: it has one thread, and its own generation.
    void become_child();

    // Before all else, by the thread that starts the library.
    void start();
    // Whether the caller belongs to the process that start() or become_child() knew, and is no child of a vfork or a
    // raw clone. A system call; false after a filter.
    bool is_process() const;

    // How many forks lie between the first process and this one.
    std::uint32_t generation() const { return held_ >> 2; }
    // What a lock's word is while it is held: see lock.h.
    std::uint32_t held() const { return held_; }

    // Returns whether the caller was outside.
    bool enter() {
        LockHolder& self = lock_holder;
        const bool outermost = self.depth++ == 0;
        if (NUMALLOC_UNLIKELY(outermost)) mark(self, 1);
        return outermost;
    }
    // false if the caller would have to wait.
    bool try_enter() {
        LockHolder& self = lock_holder;
        if (self.depth++ != 0) return true;
        // Not mark(): no lock's atomic follows that would be the barrier.
        if (self.mark != nullptr) self.mark->inside.exchange(1, std::memory_order_seq_cst);
        else shared_.inside.fetch_add(1, std::memory_order_seq_cst);
        if (!stops()) return true;
        leave();
        return false;
    }
    // The fast path of try_enter(), for the owner of the mark. Also false if the thread is inside already or closed the
    // gate.
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
        // The mark first: a signal may interrupt, and its handler fork.
        LockHolder& self = lock_holder;
        if (self.depth == 1) mark(self, 0);
        --self.depth;
    }
    // The lock that the calling thread has just taken must be given back: it came too late.
    bool is_closed() const { return owner_.load(std::memory_order_seq_cst) != nullptr; }
    bool stops() const { return owner_.load(std::memory_order_seq_cst) != nullptr && stops_caller(); }
    // Sets the calling thread's mark; nullptr: the shared one.
    void change_mark(LockMark* mark);
    // Sleeps until the gate opens.
    void wait();
    // The same for at most 10 ms, once in each fork. Returns whether the gate has opened.
    bool wait_briefly();
    // A lock is held by somebody: is that a thread of the parent, because we are the child, whose handler has not run?
    void notice_child();

private:
    void mark(const LockHolder& self, std::uint32_t inside) {
        if (self.mark != nullptr) {
            self.mark->inside.store(inside, std::memory_order_release);
#if defined(__x86_64__)
            // The lock's atomic is the barrier.
            std::atomic_signal_fence(std::memory_order_seq_cst);
#else
            if (inside != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
        } else if (inside != 0) {
            shared_.inside.fetch_add(1, std::memory_order_seq_cst);
        } else {
            shared_.inside.fetch_sub(1, std::memory_order_seq_cst);
        }
    }
    bool mine() const { return owner_.load(std::memory_order_relaxed) == &lock_holder; }
    bool stops_caller() const;
    // What the calling thread itself adds to the shared mark: a signal may have interrupted it inside.
    static std::uint32_t own_part() { return lock_holder.depth > 0 && lock_holder.mark == nullptr ? 1 : 0; }

    std::atomic<LockHolder*> owner_{nullptr};  // who closed it; nullptr: it is open
    std::atomic<std::uint32_t> opened_{0};     // how often; sleepers wait for it to change
    std::uint32_t held_ = 1;                   // generation << 2 | 1
    int process_ = 0;                          // at start(), close() and become_child()
    int nested_ = 0;                           // forks by the owner's own handlers

    // Written when threads start and end, so on another cache line than the members above, which every lock reads.
    alignas(64) LockMark shared_;
    std::atomic<std::uint32_t> mark_changes_{0};  // by threads that were inside
};

extern constinit ForkGate fork_gate;

// From now on the calling thread has the mark as its own, or shares one again.
inline void use_lock_mark(LockMark* mark) { fork_gate.change_mark(mark); }

// Enters the gate for calls that must not wait long. While an Inside exists and is true the thread may take any lock.
class [[nodiscard]] Inside {
public:
    // Refuses also within a LibcCall (libc_call.h).
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

// For locks under which the caller only reads: it passes the gate, and a fork does not wait for it. In the child such a
// lock counts as free, and what is under it is whole.
class [[nodiscard]] ReadsOnly {
public:
    ReadsOnly() { ++lock_holder.depth; }
    ~ReadsOnly() { --lock_holder.depth; }
    ReadsOnly(const ReadsOnly&) = delete;
    ReadsOnly& operator=(const ReadsOnly&) = delete;
};

// What begins under a lock and must not be cut in two by a fork, although the lock is given back before its end.
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
