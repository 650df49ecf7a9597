// A call of libc's function for what takes pages away or moves them: munmap, madvise, mremap, mmap over what is there.
//
// Who keeps memory registered (RDMA, GPUs, rings of io_uring) has to hear of it, or an old registration goes on sending what the
// pages held before. UCX, Open MPI and libfabric listen by functions in the place of libc's, preloaded or written over their code;
// a raw system call they do not hear.
//
// Such a function may allocate and free, of which the caller may be in the middle, with locks held: while it runs malloc does
// without the heap, and frees wait (heap/space/side.h).
#pragma once

#include <cerrno>

#include "os/fork_gate.h"

namespace numalloc::os {

inline bool in_libc_call() { return lock_holder.libc_calls != 0; }

// What the floor of the threads does around the outermost call, that no fast path finds its lists. Said before the first thread has any.
using AtLibcCall = void (*)(bool begins);
extern AtLibcCall at_libc_call;

// errno is as it was when the object goes.
class [[nodiscard]] LibcCall {
public:
    LibcCall() : errno_(errno) {
        if (lock_holder.libc_calls++ == 0 && at_libc_call != nullptr) at_libc_call(true);
    }
    ~LibcCall() {
        if (--lock_holder.libc_calls == 0 && at_libc_call != nullptr) at_libc_call(false);
        errno = errno_;
    }
    LibcCall(const LibcCall&) = delete;
    LibcCall& operator=(const LibcCall&) = delete;

private:
    int errno_;
};

}  // namespace numalloc::os
