// A process that has used up its mappings (vm.max_map_count) goes on: what the heap needs then, it has, or
// grows without a mapping more.
#include <sys/mman.h>

#include <cstdint>

#include "check.h"

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t slots = 40000;
char* blocks[slots];

long most_mappings() {
    std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r");
    long most = 65530;
    if (file != nullptr) {
        CHECK(std::fscanf(file, "%ld", &most) == 1);
        std::fclose(file);
    }
    return most;
}

// Every second page readable is a mapping each, until the kernel says no.
bool use_up(std::size_t pairs) {
    void* const reserve =
        mmap(nullptr, pairs * 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(reserve != MAP_FAILED);
    for (std::size_t i = 0; i < pairs; ++i)
        if (mprotect(static_cast<char*>(reserve) + i * 2 * page, page, PROT_READ) != 0) return true;
    return false;
}

}  // namespace

int main() {
    testing_support::require_library();
    free(malloc(10));
    const long most = most_mappings();
    if (most > 300000 || !use_up(static_cast<std::size_t>(most))) {
        std::puts("skipped: more mappings than can be used up");
        return 77;
    }
    testing_support::Random random(5);
    for (int i = 0; i < 100000; ++i) {
        char*& block = blocks[random.below(slots)];
        free(block);
        std::size_t size = 16 + random.below(i % 256 == 0 ? 400000 : 1000);
        if (i % 4096 == 1) size = std::size_t{8} << 20;
        block = static_cast<char*>(malloc(size));
        CHECK(block != nullptr);
        block[0] = block[size - 1] = 1;
        if (i % 1024 != 0) continue;
        auto* const larger = static_cast<char*>(realloc(block, size * 3));
        CHECK(larger != nullptr);
        larger[size * 3 - 1] = 1;
        block = larger;
    }
    for (char* block : blocks) free(block);
    // More than metadata is mapped for at a time.
    for (int i = 0; i < 3; ++i) CHECK(malloc(std::size_t{200} << 20) != nullptr);
    return 0;
}
