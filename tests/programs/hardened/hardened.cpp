// What the hardened library does to free memory. The bugs that it finds are in tests/programs/bugs.
//
//   hardened order    new objects come in an order by chance
//   hardened words    what a freed object keeps tells neither an address nor the key of another word
//   hardened strict   big objects that were freed cost no memory, few mappings and no addresses for good
//   hardened          the same where system calls are refused (survive/inject.py)
//   hardened fault    a write to a big object after its free: ends by SIGSEGV
#include <malloc.h>
#include <sys/resource.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "check.h"

namespace testing_support {
long resident_kib();
}

namespace {

using testing_support::resident_kib;

constexpr std::size_t MiB = 1024 * 1024;

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// In a list carved in order nearly all objects follow their predecessor. In random order at most half do, with a
// standard deviation of up to 2.6 percentage points over 1,024 objects, so three quarters are out of reach.
void order() {
    constexpr int count = 1024;
    for (const std::size_t size : {200, 3000, 20'000}) {
        std::free(std::malloc(size));
        std::vector<std::uintptr_t> seen;
        for (int i = 0; i < count; ++i) seen.push_back(address_of(std::malloc(size)));
        int in_a_row = 0;
        for (int i = 1; i < count; ++i) in_a_row += seen[i] > seen[i - 1] && seen[i] - seen[i - 1] < size + 5000;
        CHECK(in_a_row < count / 4 * 3);
        std::sort(seen.begin(), seen.end());
        CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    }
}

void words() {
    constexpr int count = 5000;
    std::vector<std::uint64_t*> objects;
    for (int i = 0; i < count; ++i) objects.push_back(static_cast<std::uint64_t*>(std::malloc(64)));
    const std::uintptr_t begin = address_of(*std::min_element(objects.begin(), objects.end()));
    const std::uintptr_t end = address_of(*std::max_element(objects.begin(), objects.end())) + 64;
    for (auto* o : objects) std::free(o);
    int links = 0;
    std::vector<std::uint64_t> keys;
    for (auto* o : objects) {
        volatile std::uint64_t* const word = o;
        links += word[0] != 0;
        CHECK(word[0] < begin || word[0] >= end);
        CHECK(word[1] < begin || word[1] >= end);
        keys.push_back(word[1] ^ address_of(o));
    }
    CHECK(links > count / 2);
    std::sort(keys.begin(), keys.end());
    CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

int mappings() {
    std::FILE* const file = std::fopen("/proc/self/maps", "r");
    CHECK(file != nullptr);
    int lines = 0;
    for (int c; (c = std::getc(file)) != EOF;) lines += c == '\n';
    std::fclose(file);
    return lines;
}

void big(bool strict) {
    const long resident = resident_kib();
    const int maps = mappings();
    const auto blocks_in_use = [] { return mallinfo2().hblks; };
    const std::size_t in_use = blocks_in_use();
    std::vector<char*> blocks;
    for (int i = 0; i < 16; ++i) {
        blocks.push_back(static_cast<char*>(std::malloc(4 * MiB)));
        if (blocks.back() == nullptr) _exit(3);
        std::memset(blocks.back(), i, 4 * MiB);
    }
    CHECK(blocks_in_use() == in_use + 16);
    for (char* p : blocks) std::free(p);
    CHECK(!strict || blocks_in_use() == in_use);
    CHECK(!strict || !testing_support::judges_resident_memory() || resident_kib() - resident < 8 * 1024);
    for (int i = 0; i < 3000; ++i) {
        const std::size_t size = (1 + i % 7) * MiB;
        char* const p = static_cast<char*>(std::malloc(size));
        if (p == nullptr) _exit(3);
        p[0] = p[size - 1] = 1;
        char* const q = static_cast<char*>(i % 3 == 0 ? std::realloc(p, size + MiB) : p);
        if (q == nullptr) _exit(3);
        CHECK(q[0] == 1 && q[size - 1] == 1);
        std::free(q);
        if (!strict && i == 24) break;
    }
    CHECK(!strict || mappings() < maps + 150);
    // What rests there comes back where there is nothing else.
    if (!strict) return;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    const auto filled = [] {
        std::vector<void*> all;
        for (void* p; (p = std::malloc(16 * MiB)) != nullptr;) all.push_back(p);
        CHECK(errno == ENOMEM);
        for (void* p : all) std::free(p);
        return all.size();
    };
    limit.rlim_cur = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    long pages = 0;
    CHECK(file != nullptr && std::fscanf(file, "%ld", &pages) == 1);
    std::fclose(file);
    limit.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 1024 * MiB;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    const std::size_t first = filled();
    CHECK(first > 40);
    for (int i = 0; i < 3; ++i) CHECK(filled() + 1 >= first);
}

void fault() {
    auto* const p = static_cast<volatile char*>(std::malloc(3 * MiB));
    p[1000] = 1;
    std::free(const_cast<char*>(p));
    p[1000] = 2;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    const char* const what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "order") == 0) order();
    else if (std::strcmp(what, "words") == 0) words();
    else if (std::strcmp(what, "strict") == 0) big(true);
    else if (argc == 1) big(false);
    else if (std::strcmp(what, "fault") == 0) fault();
    else CHECK(!"order, words, strict or fault");
    std::puts("done");
}
