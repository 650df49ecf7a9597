// A block that the model believes it owns: where, how large, how it was asked for, and what is
// written in it. The pattern depends on a number no other block has, so that two live blocks that
// overlap spoil each other and one of them finds out.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "check.h"

namespace model {

// How a block was made decides how it may be freed.
enum class Origin : unsigned char { malloc, aligned, new_scalar, new_array, new_aligned };

struct Block {
    unsigned char* p = nullptr;
    std::size_t size = 0;       // what the model uses of it
    bool size_known = true;     // whether that is the size asked for
    std::size_t alignment = 0;  // as asked for
    std::uint64_t number = 0;
    Origin origin = Origin::malloc;
};

// So many of a hundred blocks are large, 16 KiB to 8 MiB: the size classes that many threads share, and whole pages.
inline const long large_percent = testing_support::number_from_environment("NUMALLOC_TEST_LARGE", 0);

// Blocks beyond this are written and checked at their ends and once a page; once in a bag where most are large, for
// page faults would take all of the time.
constexpr std::size_t whole_limit = 32 * 1024;
inline const std::size_t stride = large_percent != 0 ? 32 * 1024 : 4096;

inline std::uint64_t word_at(std::uint64_t number, std::size_t offset) {
    return (number * 0x9E3779B97F4A7C15ULL) ^ (offset * 0xC2B2AE3D27D4EB4FULL);
}

// Calls visit(offset, length) for each piece of the block that carries the pattern; length <= 8.
template <class Visit>
inline void each_piece(std::size_t size, Visit visit) {
    if (size <= whole_limit) {
        for (std::size_t at = 0; at < size; at += 8) visit(at, size - at < 8 ? size - at : 8);
        return;
    }
    for (std::size_t at = 0; at < 64; at += 8) visit(at, std::size_t{8});
    for (std::size_t at = stride; at + 8 < size - 64; at += stride) visit(at, std::size_t{8});
    for (std::size_t at = size - 64; at < size; at += 8) visit(at, std::size_t{8});
}

inline void write(const Block& b) {
    each_piece(b.size, [&](std::size_t at, std::size_t length) {
        const std::uint64_t word = word_at(b.number, at);
        std::memcpy(b.p + at, &word, length);
    });
}

// Where the pattern first differs within [0, upto), or -1. After a realloc only the common part of
// the two sizes can be expected, and of a large block only the pieces that were written.
inline long first_difference(const Block& b, std::size_t upto) {
    long where = -1;
    each_piece(b.size, [&](std::size_t at, std::size_t length) {
        if (where >= 0 || at >= upto) return;
        if (at + length > upto) length = upto - at;
        const std::uint64_t word = word_at(b.number, at);
        if (std::memcmp(b.p + at, &word, length) != 0) where = static_cast<long>(at);
    });
    return where;
}

[[noreturn]] inline void report(const Block& b, const char* what, long where) {
    std::fprintf(stderr, "model: %s: block %p size %zu alignment %zu origin %d number %llu at %ld\n", what,
                 static_cast<void*>(b.p), b.size, b.alignment, static_cast<int>(b.origin),
                 static_cast<unsigned long long>(b.number), where);
    std::abort();
}

inline void verify(const Block& b) {
    const long where = first_difference(b, b.size);
    if (where >= 0) report(b, "contents changed", where);
}

}  // namespace model
