#pragma once

#include <cstdint>
#include <cstring>

#include "support/object.h"
#include "support/random.h"

namespace bench {

/// An object that carries its own size and check, so that a pointer is all that another thread needs.
/// At least 16 bytes. The head holds size and tag, the tail what follows from them.
inline void* write_letter(std::size_t bytes, std::uint32_t tag) {
    const std::uint64_t head = static_cast<std::uint64_t>(bytes) << 32 | tag;
    const std::uint64_t tail = scatter(head);
    void* const letter = take(bytes);
    std::memcpy(letter, &head, 8);
    std::memcpy(static_cast<char*>(letter) + bytes - 8, &tail, 8);
    return letter;
}

/// Checks a letter. Returns its size.
inline std::size_t read_letter(const void* letter) {
    std::uint64_t head, tail;
    std::memcpy(&head, letter, 8);
    const std::size_t bytes = head >> 32;
    // A damaged size must not lead the check far away.
    if (bytes < 16 || bytes > std::size_t{1} << 30) fail("the head of the object at %p was overwritten", letter);
    std::memcpy(&tail, static_cast<const char*>(letter) + bytes - 8, 8);
    if (tail != scatter(head)) fail("the object of %zu bytes at %p was overwritten", bytes, letter);
    return bytes;
}

/// Checks a letter, if there is one, and frees it.
inline void burn_letter(void* letter) {
    if (letter == nullptr) return;
    read_letter(letter);
    std::free(letter);
}

}  // namespace bench
