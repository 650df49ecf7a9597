#include "os/sysfs.h"

#include <fcntl.h>

#include "os/optional_call.h"

namespace numalloc::os {

namespace {

// O_NONBLOCK: after a chroot another kind of file may have the name.
constexpr int how_to_open = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

}  // namespace

long read_file(const char* path, char* buffer, Bytes capacity) {
    const long fd = optional_call(SYS_openat, AT_FDCWD, path, how_to_open, 0);
    if (failed(fd)) return fd;
    Bytes size = 0;
    long n = 0;
    while (size + 1 < capacity) {
        n = call(SYS_read, fd, buffer + size, capacity - 1 - size);
        if (n <= 0) break;
        size += static_cast<Bytes>(n);
    }
    call(SYS_close, fd);
    buffer[size] = '\0';
    return n < 0 ? n : static_cast<long>(size);
}

SysReader real_reader() {
    return {[](void*, const char* path, char* buffer, Bytes capacity) { return read_file(path, buffer, capacity); },
            nullptr};
}

void read_lines(const char* path, void (*take)(void* context, const char* line), void* context) {
    const long fd = optional_call(SYS_openat, AT_FDCWD, path, how_to_open, 0);
    if (failed(fd)) return;
    char chunk[1024];
    char line[160];
    std::size_t length = 0;
    for (long n = 0; (n = call(SYS_read, fd, chunk, sizeof chunk)) > 0;)
        for (long i = 0; i < n; ++i) {
            if (chunk[i] != '\n') {
                if (length + 1 < sizeof line) line[length++] = chunk[i];
                continue;
            }
            line[length] = '\0';
            take(context, line);
            length = 0;
        }
    call(SYS_close, fd);
}

}  // namespace numalloc::os
