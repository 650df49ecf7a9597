// Which of a program's memory asks for huge pages: `huge_pages system|auto|on|off`, which is the option's value. The
// advice is read, not whether pages came huge: the machine may have none to give. With `auto` they are not asked for
// where they are dear (os/huge_page_cost.h), nor for large blocks in memory that was not densely used before
// (heap/pages/evidence.cpp).
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"

namespace {

enum class Advice { none, asked, refused };

// Of the mapping that contains `p`.
Advice advice_of(const void* p) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long long from = 0;
        unsigned long long to = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2) inside = from <= address && address < to;
        if (!inside || line.rfind("VmFlags:", 0) != 0) continue;
        std::istringstream flags(line.substr(8));
        for (std::string flag; flags >> flag;) {
            if (flag == "hg") return Advice::asked;
            if (flag == "nh") return Advice::refused;
        }
        return Advice::none;
    }
    CHECK(!"a mapping of the heap in /proc/self/smaps");
    return Advice::none;
}

std::string system_says() {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string word;
    while (file >> word)
        if (word.front() == '[') return word;
    return "[never]";
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 2);
    const std::string option = argv[1];
    const std::string system = system_says();
    constexpr std::size_t mib = 1024 * 1024;
    // The heap grows by 4 MiB: the first, what lies about 50 MiB behind it, and about 100.
    std::vector<char*> blocks;
    for (int i = 0; i < 27; ++i) blocks.push_back(static_cast<char*>(malloc(4 * mib)));
    const Advice first = advice_of(blocks[0]);
    const Advice middle = advice_of(blocks[12]);
    const Advice last = advice_of(blocks[25]);
    std::printf("the system says %s: advice %d %d %d\n", system.c_str(), int(first), int(middle), int(last));
    if (option == "on") {
        CHECK(first == Advice::refused && middle == Advice::asked && last == Advice::asked);
    } else if (option == "off") {
        CHECK(first == Advice::refused && middle == Advice::refused && last == Advice::refused);
    } else if (system == "[always]") {
        CHECK(first == Advice::refused && middle == Advice::none && last == Advice::none);
    } else {
        CHECK(first == Advice::none && middle == Advice::none);
        // Beyond 32 huge pages it asks, and these are of 2 MiB where pages are of 4 KiB only.
        const bool asks = option == "auto" && system == "[madvise]" && sysconf(_SC_PAGESIZE) == 4096;
        CHECK(last == (asks ? Advice::refused : Advice::none));
        // Small objects' memory asks, unless touches were slow just now.
        for (int i = 0; i < 2048; ++i) blocks.push_back(static_cast<char*>(malloc(mib / 64)));
        CHECK((advice_of(blocks.back()) != Advice::none) == asks);
    }
    for (char* block : blocks) free(block);
}
