// Small text files of /sys and /proc, read and parsed without stdio or allocation.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Reads at most capacity - 1 bytes of the file and ends them with NUL. The number of bytes
// read, or -errno. errno is kept.
long read_file(const char* path, char* buffer, Bytes capacity);

// For files that may be too long for a buffer. Each line without its end, cut where it is too long for us; none
// where the file cannot be read.
void read_lines(const char* path, void (*take)(void* context, const char* line), void* context);
template <class Take>
void for_each_line(const char* path, Take take) {
    read_lines(path, [](void* context, const char* line) { (*static_cast<Take*>(context))(line); }, &take);
}

}  // namespace numalloc::os
