// mlockall: what is locked must be what is used, not what is reserved. mlock: a freed block is unlocked. Skipped where
// the limits do not allow locking at all.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "check.h"

namespace {

// A line of /proc/self/status, such as "VmData:".
long status_kib(const char* name) {
    char text[8192];
    long data = -1;
    FILE* file = std::fopen("/proc/self/status", "r");
    CHECK(file != nullptr);
    while (std::fgets(text, sizeof text, file) != nullptr)
        if (std::strncmp(text, name, std::strlen(name)) == 0) data = std::strtol(text + std::strlen(name), nullptr, 10);
    std::fclose(file);
    return data;
}

void use(std::size_t total) {
    void* blocks[64];
    for (void*& p : blocks) {
        p = malloc(total / 64);
        CHECK(p != nullptr);
        std::memset(p, 1, total / 64);
    }
    for (void* p : blocks) free(p);
}

}  // namespace

int main() {
    testing_support::require_library();
    constexpr std::size_t block = 2 << 20;
    void* const locked = malloc(block);
    CHECK(locked != nullptr);
    if (mlock(locked, block) == 0) {
        free(locked);
        malloc_trim(0);
        CHECK(status_kib("VmLck:") == 0);
    }
    // A writable reserve would be filled by mlockall, and the machine with it: fail before that.
    CHECK(status_kib("VmData:") < 1024 * 1024);
    const long start = testing_support::resident_kib();
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        std::puts("skipped: mlockall is not allowed here");
        return 77;
    }
    const long at_once = testing_support::resident_kib();
    use(std::size_t{32} << 20);
    std::thread([] { use(std::size_t{8} << 20); }).join();
    const long in_the_end = testing_support::resident_kib();
    std::printf("resident %ld MiB before mlockall, %ld after, %ld after use\n", start / 1024, at_once / 1024,
                in_the_end / 1024);
    // glibc's program itself is about 20 MiB then (whole libraries, the stack); a thread's stack is
    // locked whole, 8 MiB.
    CHECK(at_once < 96 * 1024);
    CHECK(in_the_end < 192 * 1024);
    CHECK(munlockall() == 0);
}
