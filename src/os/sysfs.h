// Reads small text files of /sys and /proc without stdio or allocation.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Reads at most capacity - 1 bytes of the file and appends a NUL. Returns the number of bytes read, or -errno. Keeps
// errno.
long read_file(const char* path, char* buffer, Bytes capacity);

// read_file(), or a made-up tree in the tests.
struct SysReader {
    long (*read)(void* context, const char* path, char* buffer, Bytes capacity);
    void* context;
};
// Reads the machine that this process runs on.
SysReader real_reader();

// For files that may be longer than a buffer: calls take(context, line) for each line, without its newline and cut to
// 159 characters. Makes no call if the file cannot be read.
void read_lines(const char* path, void (*take)(void* context, const char* line), void* context);
template <class Take>
void for_each_line(const char* path, Take take) {
    read_lines(path, [](void* context, const char* line) { (*static_cast<Take*>(context))(line); }, &take);
}

}  // namespace numalloc::os
