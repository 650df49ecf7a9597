#include "os/fork_gate.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>

#include "os/libc_call.h"
#include "os/syscall.h"

namespace numalloc::os {

constinit ForkGate fork_gate;
NUMALLOC_THREAD_LOCAL LockHolder lock_holder;
constinit AtLibcCall at_libc_call = nullptr;

namespace {

constexpr int spins_before_yield = 64;
constexpr int yields_before_sleep = 16;
constexpr long longest_sleep = 1'000'000;  // nanoseconds

// Waits until `mark` is at most `allowed`. Who is inside comes out soon, but may have lost its CPU, even to us.
void wait_until(const std::atomic<std::uint32_t>& mark, std::uint32_t allowed) {
    long sleep = 50'000;
    for (int i = 0; mark.load(std::memory_order_seq_cst) > allowed; ++i) {
        if (i < spins_before_yield) continue;
        if (i < spins_before_yield + yields_before_sleep) {
            call(SYS_sched_yield);
            continue;
        }
        timespec time{0, sleep};
        call(SYS_nanosleep, &time, 0);
        if (sleep < longest_sleep) sleep *= 2;
    }
}

}  // namespace

// One word says that it is closed and by whom: a handler of a signal may fork at any instruction of this.
void ForkGate::close() {
    if (mine()) {
        ++nested_;
        return;
    }
    for (LockHolder* nobody = nullptr; !owner_.compare_exchange_strong(nobody, &lock_holder, std::memory_order_seq_cst); nobody = nullptr) wait();
    process_ = static_cast<int>(call(SYS_getpid));
    if (waits()) wait_for_sharers();
}

void ForkGate::wait_for_sharers() { wait_until(shared_.inside, own_part()); }

// The order matters: new mark, counter, old mark. A forker that saw neither mark set sees the counter changed.
void ForkGate::change_mark(LockMark* new_mark) {
    LockHolder& self = lock_holder;
    const LockHolder old = self;
    self.mark = new_mark;
    if (old.depth == 0 || old.mark == new_mark) return;
    mark(self, 1);
    mark_changes_.fetch_add(1, std::memory_order_seq_cst);
    mark(old, 0);
}

void ForkGate::wait_for(const LockMark& mark) { wait_until(mark.inside, 0); }

void ForkGate::open() {
    if (nested_ > 0) {
        --nested_;
        return;
    }
    owner_.store(nullptr, std::memory_order_seq_cst);
    opened_.fetch_add(1, std::memory_order_seq_cst);
    call(SYS_futex, &opened_, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

void ForkGate::become_child() {
    held_ += 4;
    process_ = static_cast<int>(call(SYS_getpid));
    shared_.inside.store(own_part(), std::memory_order_relaxed);
    open();
}

bool ForkGate::stops_caller() const { return lock_holder.depth == 1 && !mine(); }

void ForkGate::wait() {
    const std::uint32_t before = opened_.load(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_seq_cst) != nullptr) call(SYS_futex, &opened_, FUTEX_WAIT_PRIVATE, before, 0, 0, 0);
}

bool ForkGate::wait_briefly() {
    const std::uint32_t before = opened_.load(std::memory_order_seq_cst);
    if (!is_closed()) return true;
    LockHolder& self = lock_holder;
    if (self.waited == before + 1) return false;
    self.waited = before + 1;
    const timespec longest{0, 10'000'000};
    call(SYS_futex, &opened_, FUTEX_WAIT_PRIVATE, before, &longest, 0, 0);
    return !is_closed();
}

void ForkGate::notice_child() {
    if (!mine()) return;
    const int process = static_cast<int>(call(SYS_getpid));
    if (process == process_) return;
    process_ = process;
    held_ += 4;
}

}  // namespace numalloc::os
