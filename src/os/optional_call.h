// A system call that the allocator can do without.
#pragma once

#include <cerrno>

#include "os/filter.h"
#include "os/syscall.h"

namespace numalloc::os {

// Its result, or -EPERM after a filter.
template <class... A>
long optional_call(long n, A... a) {
    return filtered() ? -EPERM : call(n, a...);
}

}  // namespace numalloc::os
