// A guard around calls of libc's munmap, madvise, mremap and mmap, by which the library removes and moves pages.
//
// Libraries that keep memory registered with a device (UCX, Open MPI, libfabric, users of io_uring's fixed buffers)
// must learn of each such call, or an old registration keeps sending the old pages. They interpose libc's functions or
// patch their code; a raw system call would bypass them.
//
// Such a function may call malloc and free, possibly while the calling thread holds the heap's locks or is changing its
// lists. So the thread has no heap while a LibcCall exists: malloc uses the side heap (heap/space/side.h) and frees are
// deferred.
#pragma once

#include <pthread.h>

#include <cerrno>

#include "os/fork_gate.h"

namespace numalloc::os {

inline bool in_libc_call() { return lock_holder.libc_calls != 0; }

// Called at the start and the end of a thread's outermost LibcCall: hides the thread's lists from the fast paths. Set
// before the first thread has a heap.
using AtLibcCall = void (*)(bool begins);
extern AtLibcCall at_libc_call;

// Restores errno at the end of its scope.
class [[nodiscard]] LibcCall {
public:
    LibcCall() : errno_(errno) {
        // malloc and free are not cancellation points, but the function may call one.
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
        if (lock_holder.libc_calls++ == 0 && at_libc_call != nullptr) at_libc_call(true);
    }
    ~LibcCall() {
        if (--lock_holder.libc_calls == 0 && at_libc_call != nullptr) at_libc_call(false);
        pthread_setcancelstate(cancel_state_, nullptr);
        errno = errno_;
    }
    LibcCall(const LibcCall&) = delete;
    LibcCall& operator=(const LibcCall&) = delete;

private:
    int errno_;
    int cancel_state_ = 0;
};

}  // namespace numalloc::os
