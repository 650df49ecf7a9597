#include "check.h"

#include <fcntl.h>

namespace testing_support {

namespace {

// The number of KiB behind `name`, which begins with the end of the line before.
long kib_in(const char* path, const char* name) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    char text[8192];
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    CHECK(n > 0);
    text[n] = '\0';
    const char* line = std::strstr(text, name);
    CHECK(line != nullptr);
    return std::strtol(line + std::strlen(name), nullptr, 10);
}

}  // namespace

// smaps_rollup is exact; statm and status lag by up to 64 pages a thread.
long resident_kib() { return kib_in("/proc/self/smaps_rollup", "\nRss:"); }
long peak_kib() { return kib_in("/proc/self/status", "\nVmHWM:"); }

}  // namespace testing_support
