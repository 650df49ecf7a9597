// What libnumalloc-hardened.so does beyond the others. The compiler decides: in the other libraries nothing of it is left.
//
//   in use   |  the program's                       | canary |   canary == canary_of(p): nobody wrote beyond the end
//   free     | next | mark |  0  ...  0             | 0      |   of so much as is cleared: nobody wrote after the free
//
//   usable == size of the class - canary_bytes
//
// And no free is fast: each asks its bag whether an object begins there (thread_heap.cpp).
#pragma once

#include <cstring>

#include "heap/space/bag.h"
#include "heap/space/policy.h"

namespace numalloc {

#if defined(NUMALLOC_HARDENED)
inline constexpr bool hardened = true;
#else
inline constexpr bool hardened = false;
#endif

inline constexpr Bytes canary_bytes = hardened ? sizeof(std::uint64_t) : 0;

// Not the mark: who reads beyond an object is not to learn what free objects carry. The first byte and the last are no text
// and no 0, so that one such byte too many is always seen.
inline std::uint64_t canary_of(const void* p, std::uint64_t key) {
    return (address_of(p) ^ key) * 0x9E37'79B9'7F4A'7C15U | 0x8000'0000'0000'0080U;
}

inline std::uint64_t& canary_at(void* p, Bytes size) {
    return *reinterpret_cast<std::uint64_t*>(static_cast<char*>(p) + size - sizeof(std::uint64_t));
}

// Of an object that was freed all, or its beginning and its canary.
inline void clear_freed(Object* object, Bytes size) {
    std::memset(object + 1, 0, min_of(size, policy::most_cleared) - sizeof(Object));
    if (size > policy::most_cleared) canary_at(object, size) = 0;
}

inline bool is_clear(Object* object, Bytes size) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(object);
    std::uint64_t any = size > policy::most_cleared ? canary_at(object, size) : 0;
    for (std::size_t i = sizeof(Object) / sizeof *words; i < min_of(size, policy::most_cleared) / sizeof *words; ++i) any |= words[i];
    return any == 0;
}

}  // namespace numalloc
