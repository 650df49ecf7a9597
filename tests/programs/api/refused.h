// Whether the kernel lets nobody be bound, as a filter may have it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

// Asked with the mask that is there, by a call that nobody interposes. errno is kept.
inline bool binding_is_refused() {
    const int kept = errno;
    unsigned long mask[128];
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    const bool refused = bytes > 0 && syscall(SYS_sched_setaffinity, 0, bytes, mask) != 0;
    errno = kept;
    return refused;
}
