// Eight phases, each of larger objects, and each leaves one in every 26 KiB behind: hardly a bag is free as a whole.
// The program never calls malloc_trim(), but pages for less than half of what it has used stay resident.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "check.h"

int main() {
    testing_support::require_library();
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    constexpr std::size_t a_phase = std::size_t{12} << 20;
    std::vector<std::uintptr_t> pages;
    for (std::size_t size = 200; size <= 1600; size += 200) {
        const std::size_t count = a_phase / size, left = (std::size_t{26} << 10) / size;
        std::vector<char*> blocks(count);
        for (char*& block : blocks) {
            block = static_cast<char*>(malloc(size));
            CHECK(block != nullptr);
            std::memset(block, 1, size);
            const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(block) / page * page;
            if (pages.empty() || pages.back() != first) pages.push_back(first);
        }
        for (std::size_t i = 0; i < count; ++i)
            if (i % left != 0) free(blocks[i]);
    }
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    std::size_t resident = 0;
    for (const std::uintptr_t at : pages) {
        unsigned char here = 0;
        if (mincore(reinterpret_cast<void*>(at), page, &here) == 0) resident += here & 1;
    }
    std::printf("%zu of %zu pages are resident\n", resident, pages.size());
    CHECK(resident > 0 && resident < 8 * a_phase / page / 2);
}
