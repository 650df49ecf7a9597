#include "check.h"

#include <fcntl.h>

namespace testing_support {

// smaps_rollup is exact; statm and status lag by up to 64 pages a thread.
long resident_kib() {
    const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    char text[4096];
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    CHECK(n > 0);
    text[n] = '\0';
    const char* line = std::strstr(text, "\nRss:");
    CHECK(line != nullptr);
    return std::strtol(line + 5, nullptr, 10);
}

}  // namespace testing_support
