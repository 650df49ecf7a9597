// Run under vm.overcommit_memory=2: what the heap reserves must not count as committed, and the
// program must get ordinary amounts of memory.
#include <cstring>
#include <thread>

#include "check.h"

namespace {

long committed_kib() {
    char text[8192];
    FILE* file = std::fopen("/proc/self/status", "r");
    CHECK(file != nullptr);
    // What of this process is private and writable, the part the kernel counts: VmData.
    long data = -1;
    while (std::fgets(text, sizeof text, file) != nullptr)
        if (std::strncmp(text, "VmData:", 7) == 0) data = std::strtol(text + 7, nullptr, 10);
    std::fclose(file);
    return data;
}

long all_committed_kib() {
    char text[256];
    FILE* file = std::fopen("/proc/meminfo", "r");
    CHECK(file != nullptr);
    long committed = -1;
    while (std::fgets(text, sizeof text, file) != nullptr)
        if (std::strncmp(text, "Committed_AS:", 13) == 0) committed = std::strtol(text + 13, nullptr, 10);
    std::fclose(file);
    return committed;
}

}  // namespace

int main() {
    testing_support::require_library();
    FILE* setting = std::fopen("/proc/sys/vm/overcommit_memory", "r");
    CHECK(setting != nullptr && std::fgetc(setting) == '2');
    std::fclose(setting);
    void* blocks[1000];
    for (void*& p : blocks) {
        p = malloc(100000);
        CHECK(p != nullptr);
        std::memset(p, 1, 100000);
    }
    std::thread([] {
        void* p = malloc(50 << 20);
        CHECK(p != nullptr);
        std::memset(p, 1, 50 << 20);
        free(p);
    }).join();
    const long data = committed_kib();
    std::fprintf(stderr, "VmData %ld MiB, the machine has committed %ld MiB\n", data / 1024,
                 all_committed_kib() / 1024);
    // 100 MiB live, 50 freed, two 8 MiB stacks' worth, and room for rounding.
    CHECK(data < 1024 * 1024);
    for (void* p : blocks) free(p);
    CHECK(malloc(std::size_t{100} << 40) == nullptr);
    std::puts("committed what is used");
}
