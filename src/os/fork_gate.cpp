#include "os/fork_gate.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>

#include "base/bits.h"
#include "os/brief_wait.h"
#include "os/libc_call.h"
#include "os/optional_call.h"

namespace numalloc::os {

constinit ForkGate fork_gate;
NUMALLOC_THREAD_LOCAL LockHolder lock_holder;
constinit AtLibcCall at_libc_call = nullptr;

namespace {

constexpr long longest_sleep = 1'000'000;      // nanoseconds
constexpr std::uint32_t least_patience = 100;  // microseconds

constexpr int unknown = -EPERM;

int process() { return static_cast<int>(optional_call(SYS_getpid)); }

}  // namespace

// One word holds whether the gate is closed and by whom: a signal handler may fork at any instruction of close().
void ForkGate::close() {
    if (mine()) {
        ++nested_;
        return;
    }
    while (!become_owner()) wait();
    process_ = process();
    if (waits()) wait_for_sharers();
}

bool ForkGate::become_owner() {
    LockHolder* nobody = nullptr;
    return owner_.compare_exchange_strong(nobody, &lock_holder, std::memory_order_seq_cst);
}

bool ForkGate::try_close(std::uint32_t& sleeps) {
    if (mine()) {
        ++nested_;
        return true;
    }
    for (;;) {
        const std::uint32_t before = opened_.load(std::memory_order_seq_cst);
        if (become_owner()) break;
        if (sleeps == 0) return false;
        --sleeps;
        const timespec longest{0, longest_sleep};
        sleep(before, longest);
    }
    process_ = process();
    if (wait_for_sharers(sleeps)) return true;
    open();
    return false;
}

void ForkGate::start() { process_ = process(); }

bool ForkGate::is_process() const {
    const int now = process();
    return now == process_ && now != unknown;
}

bool ForkGate::wait_for_sharers(std::uint32_t& sleeps) { return wait_for_fall(shared_.inside, own_part(), sleeps); }

void ForkGate::wait_for_sharers() {
    std::uint32_t sleeps = without_end;
    wait_for_sharers(sleeps);
}

// The order matters: set the new mark, change the counter, clear the old mark. A forking thread that saw neither mark
// set sees that the counter has changed.
void ForkGate::change_mark(LockMark* new_mark) {
    LockHolder& self = lock_holder;
    const LockHolder old = self;
    self.mark = new_mark;
    if (old.depth == 0 || old.mark == new_mark) return;
    mark(self, 1);
    mark_changes_.fetch_add(1, std::memory_order_seq_cst);
    mark(old, 0);
}

bool ForkGate::wait_for(const LockMark& mark, std::uint32_t& sleeps) { return wait_for_fall(mark.inside, 0, sleeps); }

void ForkGate::wait_for(const LockMark& mark) {
    std::uint32_t sleeps = without_end;
    wait_for(mark, sleeps);
}

void ForkGate::open() {
    if (nested_ > 0) {
        --nested_;
        return;
    }
    owner_.store(nullptr, std::memory_order_seq_cst);
    opened_.fetch_add(1, std::memory_order_seq_cst);
    // A program with one thread may run under a filter that kills for futex.
    if (sleepers_.load(std::memory_order_seq_cst) != 0) call(SYS_futex, &opened_, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

void ForkGate::become_child() {
    held_ += 4;
    process_ = process();
    shared_.inside.store(own_part(), std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
}

bool ForkGate::stops_caller() const { return lock_holder.depth == 1 && !mine(); }

// open() changes opened_ and then reads sleepers_; this changes sleepers_, and then the kernel reads opened_. So at
// least one of the two threads sees the other.
void ForkGate::sleep(std::uint32_t before, const timespec& longest) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    call(SYS_futex, &opened_, FUTEX_WAIT_PRIVATE, before, &longest, 0, 0);
    // The child of a signal handler that forked while this thread slept has no sleepers.
    lower(sleepers_);
}

void ForkGate::wait() {
    const std::uint32_t before = opened_.load(std::memory_order_seq_cst);
    // In a child nobody wakes a thread that slept before become_child().
    const timespec longest{0, 100 * longest_sleep};
    if (owner_.load(std::memory_order_seq_cst) != nullptr) sleep(before, longest);
}

bool ForkGate::wait_briefly() {
    const std::uint32_t before = opened_.load(std::memory_order_seq_cst);
    if (!is_closed()) return true;
    LockHolder& self = lock_holder;
    if (self.waited == before + 1) return false;
    self.waited = before + 1;
    // Forks that wait for what their waiters hold would cost 10 ms each.
    const std::uint32_t patience = patience_.load(std::memory_order_relaxed);
    const timespec longest{0, static_cast<long>(patience) * 1000};
    sleep(before, longest);
    const bool in_vain = opened_.load(std::memory_order_seq_cst) == before;
    patience_.store(in_vain ? max_of(patience / 2, least_patience) : min_of(patience * 2, most_patience),
                    std::memory_order_relaxed);
    return !is_closed();
}

void ForkGate::notice_child() {
    if (!mine()) return;
    const int now = process();
    if (now == process_ || now == unknown) return;
    process_ = now;
    held_ += 4;
}

}  // namespace numalloc::os
