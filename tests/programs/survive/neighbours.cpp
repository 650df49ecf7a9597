// Programs that place mappings themselves: the addresses that runtimes and sanitizers are known to
// take must stay free under the library, large reserves must stay possible, mappings next to
// blocks must not be run over, and addresses must differ from run to run.
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

namespace {

void* at(std::uintptr_t address, std::size_t size) {
    return mmap(reinterpret_cast<void*>(address), size, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

void fixed_addresses_are_free() {
    // The low 4 GiB (compressed pointers), Go's arenas, Java's usual heaps, ASan's shadow.
    const std::uintptr_t wanted[] = {0x10000000,    0x7fff8000,     0x80000000,     0x100000000,
                                     0x700000000,   0x800000000,    0x10007fff8000, 0xc000000000,
                                     0x20000000000, 0x200000000000, 0x600000000000};
    const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (std::uintptr_t exactly : wanted) {
        const std::uintptr_t address = exactly / page * page;
        void* p = at(address, std::size_t{16} << 20);
        if (p == MAP_FAILED) std::fprintf(stderr, "%#lx: %s\n", address, std::strerror(errno));
        CHECK(p != MAP_FAILED && reinterpret_cast<std::uintptr_t>(p) == address);
        munmap(p, std::size_t{16} << 20);
    }
}

// Runtimes reserve a terabyte and more; 64 of 128 must be left, 60 of them in one piece.
void large_reserves_are_possible() {
    const std::size_t tib = std::size_t{1} << 40;
    std::vector<void*> reserves;
    for (int i = 0; i < 64; ++i) {
        void* p = mmap(nullptr, tib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) break;
        reserves.push_back(p);
    }
    CHECK(reserves.size() == 64);
    for (void* p : reserves) munmap(p, tib);
    void* const whole = mmap(nullptr, 60 * tib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(whole != MAP_FAILED);
    munmap(whole, 60 * tib);
}

// A mapping of the program's own right beside everything the heap has, then a growing heap: the
// library must never map over it.
void own_mappings_are_left_alone() {
    std::vector<unsigned char*> own;
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i) {
        void* p = malloc((std::size_t{1} << 20) + static_cast<std::size_t>(i) * 40000);
        CHECK(p != nullptr);
        blocks.push_back(p);
        // Asked for, not forced: the kernel puts it as near as it may.
        void* m =
            mmap(static_cast<char*>(p) + (8 << 20), 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(m != MAP_FAILED);
        std::memset(m, i, 65536);
        own.push_back(static_cast<unsigned char*>(m));
    }
    for (int i = 0; i < 200; ++i) {
        void* p = malloc(std::size_t{3} << 20);
        std::memset(p, 0xFF, std::size_t{3} << 20);
        blocks.push_back(p);
    }
    for (int i = 0; i < 200; ++i)
        for (int k = 0; k < 65536; ++k) CHECK(own[static_cast<std::size_t>(i)][k] == static_cast<unsigned char>(i));
    for (void* p : blocks) free(p);
    for (unsigned char* m : own) munmap(m, 65536);
}

}  // namespace

int main(int argc, char**) {
    testing_support::require_library();
    if (argc > 1) {  // one line for aslr.sh
        std::printf("%p\n", malloc(100));
        return 0;
    }
    free(malloc(100));
    std::thread([] { free(malloc(100)); }).join();
    fixed_addresses_are_free();
    large_reserves_are_possible();
    own_mappings_are_left_alone();
    std::puts("good neighbours");
}
