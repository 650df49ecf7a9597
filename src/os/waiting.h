// Whether another thread of the process sleeps in the kernel, in a call that the program made through libc and that only
// waits. Such a thread is inside no function of ours, and when it wakes it reads memory anew.
//
// Soundness. A thread may also sleep while a function of ours is half done, in three ways:
//   - in a system call of ours: then its program counter is not in libc;
//   - in a handler of a signal that interrupted us: then the kernel says that the handler's signal is blocked, unless
//     the handler is of a kind that does not block it. If there is one such handler we never say yes;
//   - under an emulator or an instrument, which sleeps for reasons of its own: then what the kernel says of the process is
//     not what the program was told of itself (the auxiliary vector).
// The kernel says it in two files; the thread has not run between them if its processor time is still the same.
#pragma once

#include <cstdint>

namespace numalloc::os {

// Signals 1 to 64, a bit each, from bit 0 on.
using Signals = std::uint64_t;

// The calling thread's blocked signals: a system call.
Signals blocked_signals();

// What is the same for all threads, as it is now. Some 70 system calls; the first asks the kernel more, once.
class WaitSight {
public:
    WaitSight();
    // Whether anything can be told at all.
    bool sees() const { return sees_; }
    // Whether `thread` waits as above. `ignored`: signals that it had blocked before it used any function of ours.
    // Some 40 us; in doubt no.
    bool waits(int thread, Signals ignored) const;

private:
    bool sees_;
    Signals caught_ = 0;  // signals that have a handler
};

// Whether `thread` lives and has `tls` among its thread-local memory, where the calling thread has `own_tls`.
// Reads nothing there.
bool has_thread_local(int thread, const void* tls, const void* own_tls);

}  // namespace numalloc::os
