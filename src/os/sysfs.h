// Small text files of /sys and /proc, read and parsed without stdio or allocation.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Reads at most capacity - 1 bytes of the file and ends them with NUL. The number of bytes
// read, or -errno. errno is kept.
long read_file(const char* path, char* buffer, Bytes capacity);

}  // namespace numalloc::os
