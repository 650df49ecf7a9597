// Whether another thread of the process sleeps in the kernel, in a call that the program made through libc and that only
// waits. Such a thread is inside no function of ours, and when it wakes it reads memory anew.
//
// Soundness. A thread may also sleep while a function of ours is half done, in three ways:
//   - in a system call of ours: then its program counter is not in libc;
//   - in a handler of a signal that interrupted us: then the kernel says that a signal is blocked, unless the handler is
//     of a kind that does not block its own. If there is one such handler we never say yes. One that unblocks its signal
//     itself has the end of handlers on the thread's stack, where it returns to;
//   - under an emulator or an instrument, which sleeps for reasons of its own: then what the kernel says of the process is
//     not what the program was told of itself (the auxiliary vector).
// The kernel says it in two files, and reads the stack; the thread has not run meanwhile if its processor time is still the same.
#pragma once

#include <cstdint>

namespace numalloc::os {

// What is the same for all threads, as it is now. Some 70 system calls; the first asks the kernel more, once.
class WaitSight {
public:
    WaitSight();
    // Whether anything can be told at all.
    bool sees() const { return sees_; }
    // Whether `thread` is in a call of libc's that only waits. Some 20 us.
    bool is_in_a_wait(int thread) const;
    // Whether it waits as above, and blocks no signal. Some 50 us; in doubt no.
    bool waits(int thread) const;

private:
    bool is_in_a_wait(int thread, std::uint64_t& stack) const;
    bool is_end_of_handlers(std::uint64_t word) const;
    bool returns_from_a_handler(std::uint64_t stack) const;

    bool sees_;
    // Where handlers return to: one place for all that libc installs.
    static constexpr unsigned most_ends = 4;
    std::uint64_t ends_[most_ends] = {};
};

// In the child of a fork, which may see other processes than its parent.
void look_again_who_waits();

// Whether `thread` lives and has `tls` among its thread-local memory, where the calling thread has `own_tls`.
// Reads nothing there.
bool has_thread_local(int thread, const void* tls, const void* own_tls);

}  // namespace numalloc::os
