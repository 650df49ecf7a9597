// A line of text built on the stack: no stdio, no allocation, safe before libc is ready and in signal handlers. Text
// beyond the capacity is cut, without an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace numalloc {

template <std::size_t Capacity>
class Text {
public:
    Text& operator<<(const char* s) {
        while (*s != '\0') put(*s++);
        return *this;
    }
    Text& operator<<(char c) {
        put(c);
        return *this;
    }
    Text& operator<<(std::uint64_t v) { return number(v, 10); }
    Text& operator<<(std::int64_t v) {
        if (v < 0) put('-');
        return number(v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v), 10);
    }
    Text& operator<<(unsigned v) { return number(v, 10); }
    Text& operator<<(int v) { return *this << static_cast<std::int64_t>(v); }
    Text& operator<<(const void* p) {
        *this << "0x";
        return number(reinterpret_cast<std::uintptr_t>(p), 16);
    }
    // Appends `n` characters, which need not end in NUL: part of an environment entry, for example.
    Text& append(const char* s, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) put(s[i]);
        return *this;
    }

    const char* c_str() const { return buffer_; }
    std::size_t size() const { return size_; }

private:
    void put(char c) {
        if (size_ + 1 < Capacity) {
            buffer_[size_++] = c;
            buffer_[size_] = '\0';
        }
    }
    Text& number(std::uint64_t v, unsigned radix) {
        char digits[20];
        unsigned n = 0;
        do {
            digits[n++] = "0123456789abcdef"[v % radix];
            v /= radix;
        } while (v != 0);
        while (n > 0) put(digits[--n]);
        return *this;
    }

    char buffer_[Capacity] = {};
    std::size_t size_ = 0;
};

}  // namespace numalloc
