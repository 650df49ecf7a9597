// Where metadata is: in stretches of its own, between pages that nobody can touch, and none of them is at a distance from an
// object that another process has. Prints the distances of all that numalloc has mapped, from the first object of 64 bytes, in
// the order of the addresses; places.py compares them.
#include <cstdint>
#include <vector>

#include "check.h"

namespace {

struct Stretch {
    std::uintptr_t begin, end;
    bool has(const void* p) const { return reinterpret_cast<std::uintptr_t>(p) - begin < end - begin; }
};

// Of what has no name, in the part of the address space in which objects are. What touches is one.
std::vector<Stretch> stretches_around(const void* object) {
    constexpr std::uintptr_t far = std::uintptr_t{16} << 40;
    const auto middle = reinterpret_cast<std::uintptr_t>(object);
    std::vector<Stretch> all;
    FILE* file = std::fopen("/proc/self/maps", "r");
    CHECK(file != nullptr);
    char line[4096];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        unsigned long begin = 0, end = 0, inode = 0;
        char access[5] = {}, name[2] = {};
        const int fields = std::sscanf(line, "%lx-%lx %4s %*s %*s %lu %1s", &begin, &end, access, &inode, name);
        CHECK(fields >= 4);
        if (fields > 4 || access[0] != 'r' || begin + far < middle || begin > middle + far) continue;
        if (!all.empty() && all.back().end == begin) all.back().end = end;
        else all.push_back({begin, end});
    }
    std::fclose(file);
    return all;
}

}  // namespace

int main() {
    testing_support::require_library();
    const void* const first = malloc(64);
    std::vector<void*> objects;
    for (std::size_t size = 16; size < (std::size_t{4} << 20); size += size / 4)
        for (int i = 0; i < 10; ++i) objects.push_back(malloc(size));
    std::vector<Stretch> metadata;
    for (const Stretch& s : stretches_around(first)) {
        int inside = 0;
        for (const void* p : objects) inside += s.has(p);
        if (inside == 0) metadata.push_back(s);
        else CHECK(s.has(first));  // one thread: all are of one node
    }
    for (const Stretch& s : metadata) std::printf("%ld ", static_cast<long>(s.begin - reinterpret_cast<std::uintptr_t>(first)));
    std::puts("");
}
