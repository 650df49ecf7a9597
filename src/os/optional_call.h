// A system call that the allocator can do without.
#pragma once

#include <cerrno>

#include "os/filter.h"
#include "os/syscall.h"

namespace numalloc::os {

// Returns its result, or -EPERM, without the call, after a filter.
template <class... A>
long optional_call(long n, A... a) {
    return filtered() ? -EPERM : call(n, a...);
}

}  // namespace numalloc::os
