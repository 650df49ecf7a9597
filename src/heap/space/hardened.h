// What libnumalloc-hardened.so does in addition. The other libraries are compiled without it.
//
//   in use   |  the program's             | canary | origin |   canary == canary_of(p), and origin is valid: no write
//                                                               beyond the end
//   free     | next | mark |  0  ...  0   | 0      | 0      |   the cleared bytes are 0: no write after the free
//   usable == size of the class, or of a big object's bags, - tail_bytes
//
// The origin tells which function allocated the object, so that a free can check that it matches. Every free, also on
// the fast path, checks that an object begins at its address (heap/thread/hardened_paths.h).
#pragma once

#include <cstring>

#include "heap/space/bag.h"

namespace numalloc {

namespace policy::freed {

// The hardened library clears 4 KiB of a freed object at most, and checks that part before it hands the object out
// again: a free takes a bounded time.
constexpr Bytes most_cleared = 4 * KiB;

}  // namespace policy::freed

struct Tail {
    std::uint64_t canary;
    std::uint64_t origin;
};

inline constexpr Bytes tail_bytes = hardened ? sizeof(Tail) : 0;

// An origin: the family of malloc, new, or new[]; and the alignment passed to new: 0, or its logarithm plus 1.
enum class Form : std::uint8_t { malloc, single, array };
using Origin = std::uint64_t;
constexpr Origin origins = 512;
constexpr Origin origin_of(Form form, Bytes alignment) {
    return static_cast<Origin>(form) | (alignment == 0 ? 0 : Origin{log2_floor(alignment)} + 1) << 2;
}
constexpr Form form_of(Origin origin) { return static_cast<Form>(origin & 3); }

// The first and the last byte of each word are neither text nor 0. So a write of one such byte beyond the end, or in
// front of the next object, is always found.
inline constexpr std::uint64_t no_text = 0x8000'0000'0000'0080U;
inline std::uint64_t canary_of(const void* p) { return secret_at(address_of(p) + 1) | no_text; }
inline std::uint64_t origin_word(std::uint64_t canary, Origin origin) { return (~canary | no_text) ^ origin; }

// `size`: with the tail.
inline Tail& tail_of(const void* p, Bytes size) {
    return *reinterpret_cast<Tail*>(address_of(p) + size - sizeof(Tail));
}
inline void set_tail(void* p, Bytes size, Origin origin) {
    const std::uint64_t canary = canary_of(p);
    tail_of(p, size) = {canary, origin_word(canary, origin)};
}
// `origins` or more, which is no origin, if the tail was written to.
inline Origin origin_at(const void* p, Bytes size) {
    const std::uint64_t canary = canary_of(p);
    const Tail& tail = tail_of(p, size);
    return tail.canary == canary ? origin_word(canary, 0) ^ tail.origin : origins;
}

// Clears a freed object behind its link and mark; of one longer than policy::freed::most_cleared the beginning and the
// tail.
inline void clear_freed(Object* object, Bytes size) {
    std::memset(static_cast<void*>(object + 1), 0, min_of(size, policy::freed::most_cleared) - sizeof(Object));
    if (size > policy::freed::most_cleared) tail_of(object, size) = {};
}

inline bool is_clear(Object* object, Bytes size) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(object);
    std::uint64_t any =
        size > policy::freed::most_cleared ? tail_of(object, size).canary | tail_of(object, size).origin : 0;
    for (std::size_t i = sizeof(Object) / sizeof *words; i < min_of(size, policy::freed::most_cleared) / sizeof *words;
         ++i)
        any |= words[i];
    return any == 0;
}

}  // namespace numalloc
