// What the hardened library does to free memory. The bugs that it finds are in tests/programs/bugs.
//
//   hardened order    new objects come in an order by chance
//   hardened words    what a freed object keeps tells neither an address nor the key of another word
//   hardened strict   big objects that were freed cost no memory, few mappings and no addresses for good
//   hardened          the same where system calls are refused (survive/inject.py)
//   hardened guards   bags and big objects with guards: how many, that all of an object is usable, that they go with it
//   hardened many     more big objects than there may be guards
//   hardened fault    a write to a big object after its free: ends by SIGSEGV
//   hardened over_write, over_read, under_write, shrunk, grown, moved, aligned, bag
//                     a wrong access to a guard: ends by SIGSEGV
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

// Eight in ten would be in a row by addresses where a list is carved in order.
void order() {
    for (const std::size_t size : {200, 3000, 20'000}) {
        std::free(std::malloc(size));
        std::vector<std::uintptr_t> seen;
        for (int i = 0; i < 64; ++i) seen.push_back(address_of(std::malloc(size)));
        int in_a_row = 0;
        for (int i = 1; i < 64; ++i) in_a_row += seen[i] > seen[i - 1] && seen[i] - seen[i - 1] < size + 5000;
        CHECK(in_a_row < 48);
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
    CHECK(!strict || resident_kib() - resident < 8 * 1024);
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

volatile char* big_object(std::size_t bytes) { return static_cast<volatile char*>(std::malloc(bytes)); }
volatile char* resized(volatile char* p, std::size_t bytes) {
    volatile char* const q = static_cast<char*>(std::realloc(const_cast<char*>(p), bytes));
    CHECK(q != nullptr && q[0] == 7 && q[bytes - 1] >= 0);
    return q;
}
std::size_t usable(volatile char* p) { return malloc_usable_size(const_cast<char*>(p)); }

struct Stretch {
    std::uintptr_t begin, end;
};
// What nobody may touch.
std::vector<Stretch> closed() {
    std::FILE* const file = std::fopen("/proc/self/maps", "r");
    CHECK(file != nullptr);
    std::vector<Stretch> all;
    char line[512];
    char access[8];
    for (Stretch s; std::fgets(line, sizeof line, file) != nullptr;)
        if (std::sscanf(line, "%lx-%lx %7s", &s.begin, &s.end, access) == 3 && std::strcmp(access, "---p") == 0) all.push_back(s);
    std::fclose(file);
    return all;
}

// A bag each.
constexpr std::size_t bag = 32 * 1024;
std::vector<char*> bags(int count) {
    std::vector<char*> all;
    for (int i = 0; i < count; ++i) all.push_back(static_cast<char*>(std::malloc(bag - 16)));
    return all;
}
// Of the objects those that a guard lies behind.
std::vector<char*> guarded_of(const std::vector<char*>& objects) {
    const std::vector<Stretch> none = closed();
    std::vector<char*> all;
    for (char* p : objects) {
        const std::uintptr_t end = address_of(p) + bag;
        if (std::any_of(none.begin(), none.end(), [=](Stretch s) { return s.begin <= end && end < s.end; })) all.push_back(p);
    }
    return all;
}

void guards() {
    const int before = mappings();
    std::vector<char*> objects = bags(1600);
    const std::size_t guarded = guarded_of(objects).size();
    CHECK(guarded > 50 && guarded < 200);
    for (char* p : objects) std::free(p);
    malloc_trim(0);

    // All that is usable can be written, however it came to its size.
    for (std::size_t pages : {200, 256, 263, 1000, 2048}) {
        auto* p = static_cast<char*>(std::malloc(pages * 4096 - 10));
        CHECK(malloc_usable_size(p) == pages * 4096);
        for (int change : {1, 3, 40, -5, -2, 900, -600, 8, 2000}) {
            pages = static_cast<std::size_t>(static_cast<int>(pages) + change);
            if (pages < 140) pages = 140;
            p = static_cast<char*>(std::realloc(p, pages * 4096 - 5));
            CHECK(p != nullptr && malloc_usable_size(p) == pages * 4096);
            std::memset(p, change, pages * 4096);
        }
        std::free(p);
        p = static_cast<char*>(std::calloc(pages, 4096));
        for (std::size_t i = 0; i < pages * 4096; ++i) CHECK(p[i] == 0);
        std::free(p);
    }
    for (std::size_t alignment : {64 * 1024, 1024 * 1024, 8 * 1024 * 1024}) {
        auto* const p = static_cast<char*>(aligned_alloc(alignment, MiB));
        CHECK(p != nullptr && address_of(p) % alignment == 0);
        std::memset(p, 1, malloc_usable_size(p));
        std::free(p);
    }
    malloc_trim(0);
    CHECK(mappings() < before + 150);
}

void many() {
    constexpr int count = 12000;
    const int before = mappings();
    std::vector<char*> all;
    for (int i = 0; i < count; ++i) {
        all.push_back(static_cast<char*>(std::malloc(600 * 1024)));
        CHECK(all.back() != nullptr);
        if (i % 50 == 0 || i > count - 50) std::memset(all.back(), i, malloc_usable_size(all.back()));
    }
    CHECK(mappings() < before + 16384 + 1000);  // neighbours' guards are one
    for (char* p : all) std::free(p);
    malloc_trim(0);
    CHECK(mappings() < before + 200);
}

void wrong_access(const char* what) {
    const auto is = [=](const char* name) { return std::strcmp(what, name) == 0; };
    if (is("bag")) {
        const std::vector<char*> guarded = guarded_of(bags(1600));
        CHECK(!guarded.empty());
        static_cast<volatile char*>(guarded.front())[bag] = 1;
    }
    volatile char* p = big_object(is("aligned") ? 1 : 4 * MiB);
    if (is("aligned")) p = static_cast<volatile char*>(aligned_alloc(MiB, 4 * MiB));
    p[0] = 7;
    if (is("shrunk")) p = resized(p, 3 * MiB);
    if (is("grown")) p = resized(p, 4 * MiB + 8000);
    if (is("moved")) {
        volatile char* const in_the_way = big_object(4 * MiB);
        in_the_way[0] = 1;
        p = resized(p, 40 * MiB);
    }
    if (is("over_read")) CHECK(p[usable(p)] == 0);
    else if (is("under_write")) p[-1] = 1;
    else p[usable(p)] = 1;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    const char* const what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "order") == 0) order();
    else if (std::strcmp(what, "words") == 0) words();
    else if (std::strcmp(what, "strict") == 0) big(true);
    else if (argc == 1) big(false);
    else if (std::strcmp(what, "guards") == 0) guards();
    else if (std::strcmp(what, "many") == 0) many();
    else if (std::strcmp(what, "fault") == 0) fault();
    else wrong_access(what);
    std::puts("done");
}
