// How the interface reports an error: -1, and errno.
#pragma once

#include <cerrno>

namespace numalloc::api {

inline int fail(int error) {
    errno = error;
    return -1;
}

}  // namespace numalloc::api
