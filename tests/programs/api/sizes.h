// The sizes at which an allocator changes its mind: around powers of two, quarter steps, pages,
// bags and huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace api {

inline std::vector<std::size_t> interesting_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size <= 1100; ++size) sizes.push_back(size);
    for (std::size_t power = 1024; power <= (std::size_t{8} << 20); power *= 2)
        for (std::size_t quarter = 4; quarter < 8; ++quarter)
            for (int off : {-17, -16, -15, -1, 0, 1, 15, 16, 17})
                sizes.push_back(power / 4 * quarter + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(off)));
    return sizes;
}

// Hides a constant from the compiler, which would warn of it or fold the call away.
inline std::size_t opaque(std::size_t n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

inline std::vector<std::size_t> impossible_sizes() {
    std::vector<std::size_t> sizes;
    const auto largest = static_cast<std::size_t>(PTRDIFF_MAX);
    for (std::size_t off : {0, 1, 2, 15, 16, 4095, 4096, 32767, 32768}) {
        sizes.push_back(opaque(largest + off));
        sizes.push_back(opaque(largest - off));
        sizes.push_back(opaque(SIZE_MAX - off));
    }
    for (int bit = 48; bit < 64; ++bit) sizes.push_back(opaque(std::size_t{1} << bit));
    return sizes;
}

inline bool all_bytes(const unsigned char* p, std::size_t n, unsigned char value) {
    for (std::size_t i = 0; i < n; ++i)
        if (p[i] != value) return false;
    return true;
}

}  // namespace api
