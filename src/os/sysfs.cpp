#include "os/sysfs.h"

#include <fcntl.h>

#include "os/syscall.h"

namespace numalloc::os {

long read_file(const char* path, char* buffer, Bytes capacity) {
    const long fd = call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
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

}  // namespace numalloc::os
