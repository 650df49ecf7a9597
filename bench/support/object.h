#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "support/command.h"

namespace bench {

/// Memory from malloc; fails the program when there is none.
inline void* take(std::size_t bytes) {
    void* const p = std::malloc(bytes);
    if (p == nullptr) fail("no memory for %zu bytes", bytes);
    return p;
}

/// What an operator new returned; fails the program when that is NULL. The standard forbids it, and a compiler
/// relies on that, but there are allocators that return it: the compiler must not know where `p` comes from.
inline void* checked(void* p, std::size_t bytes) {
    __asm__("" : "+r"(p));
    if (p == nullptr) fail("no memory for %zu bytes", bytes);
    return p;
}

/// Writes the tag to both ends of the bytes at p, as far as there is room for it.
inline void stamp(void* p, std::size_t bytes, std::uint64_t tag) {
    if (bytes >= 8) {
        std::memcpy(p, &tag, 8);
        if (bytes >= 16) std::memcpy(static_cast<char*>(p) + bytes - 8, &tag, 8);
    } else {
        std::memset(p, static_cast<int>(tag & 0xff), bytes);
    }
}

/// Fails the program unless the tag is still there.
inline void verify(const void* p, std::size_t bytes, std::uint64_t tag) {
    bool good = true;
    if (bytes >= 8) {
        std::uint64_t head = 0, tail = tag;
        std::memcpy(&head, p, 8);
        if (bytes >= 16) std::memcpy(&tail, static_cast<const char*>(p) + bytes - 8, 8);
        good = head == tag && tail == tag;
    } else {
        for (std::size_t i = 0; i < bytes; ++i) good &= static_cast<const unsigned char*>(p)[i] == (tag & 0xff);
    }
    if (!good) fail("the object of %zu bytes at %p was overwritten", bytes, p);
}

/// A tagged piece of memory, allocated, checked and freed by whoever holds it. No destructor: the
/// programs say themselves when, and by which thread, an object is freed.
struct Object {
    void* memory = nullptr;
    std::size_t bytes = 0;
    std::uint64_t tag = 0;

    void allocate(std::size_t size, std::uint64_t with_tag) {
        memory = take(size);
        bytes = size;
        tag = with_tag;
        stamp(memory, bytes, tag);
    }
    void check() const { verify(memory, bytes, tag); }
    void release() {
        if (memory == nullptr) return;
        check();
        std::free(memory);
        memory = nullptr;
    }
};

}  // namespace bench
