#include "os/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "os/optional_call.h"
#include "os/signal.h"
#include "os/sysfs.h"

namespace numalloc::os {

long open_to_append(const char* path) {
    return call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
}

long create_file(const char* path) {
    return call(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
}

long write_all(long fd, const char* text, Bytes length) {
    const WritesAreHarmless meanwhile;
    while (length > 0) {
        const long n = call(SYS_write, fd, text, length);
        if (n == -EINTR) continue;
        if (failed(n)) return n;
        text += n;
        length -= static_cast<Bytes>(n);
    }
    return 0;
}

long copy_of(long fd) {
    constexpr int first = 500;
    const long copy = call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, first);
    return failed(copy) ? call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3) : copy;
}

FileIdentity identity_of(long fd) {
    struct stat s{};
    if (failed(call(SYS_fstat, fd, &s))) return {};
    return {.found = true, .device = s.st_dev, .inode = s.st_ino};
}

long open_own_memory() { return optional_call(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC, 0); }

bool read_own_memory(long fd, Address from, void* to, Bytes length) {
    return !failed(fd) && call(SYS_pread64, fd, to, length, from) == static_cast<long>(length);
}

void close_file(long fd) { call(SYS_close, fd); }

void* share_memory(const char* path, Bytes bytes) {
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    long fd = call(SYS_openat, AT_FDCWD, path, flags, 0600);
    if (fd == -EEXIST) {
        remove_file(path);
        fd = call(SYS_openat, AT_FDCWD, path, flags, 0600);
    }
    if (failed(fd)) return nullptr;
    // Allocates the blocks now: on a full file system the first touch would raise SIGBUS.
    const WritesAreHarmless meanwhile;
    long p = 0;
    do p = call(SYS_fallocate, fd, 0, 0, bytes);
    while (p == -EINTR);
    if (!failed(p)) p = call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    call(SYS_close, fd);
    if (!failed(p)) return reinterpret_cast<void*>(p);
    remove_file(path);
    return nullptr;
}

void remove_file(const char* path) { call(SYS_unlinkat, AT_FDCWD, path, 0); }

unsigned user_id() { return static_cast<unsigned>(call(SYS_geteuid)); }

std::uint64_t process_start() {
    char text[512];
    if (read_file("/proc/self/stat", text, sizeof text) <= 0) return 0;
    // The process name may contain spaces and brackets. The third field follows the last closing bracket.
    const char* p = strrchr(text, ')');
    if (p == nullptr) return 0;
    for (int field = 2; *p != '\0' && field < 22; ++p)
        if (*p == ' ') ++field;
    std::uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; ++p) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
    return value;
}

}  // namespace numalloc::os
