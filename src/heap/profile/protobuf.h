// Protocol Buffers' wire format, as far as a profile needs it: numbers, texts, nested messages.
#pragma once

#include <cstring>

#include "base/bits.h"
#include "os/file.h"

namespace numalloc::profile {

// A message that is built in memory. Bytes beyond `Capacity` are cut off, so the caller must know how long it can be.
template <Bytes Capacity>
class Message {
public:
    // Writes no 0: that is the value of an absent number.
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;
        varint(field << 3U);
        varint(value);
    }
    void text(unsigned field, const char* p, Bytes bytes) {
        varint(field << 3U | 2U);
        varint(bytes);
        append(p, bytes);
    }
    template <Bytes Inner>
    void message(unsigned field, const Message<Inner>& inner) {
        text(field, inner.data(), inner.size());
    }

    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7U) put(static_cast<char>(value | 0x80U));
        put(static_cast<char>(value));
    }

    const char* data() const { return buffer_; }
    Bytes size() const { return size_; }

private:
    void put(char c) {
        if (size_ < Capacity) buffer_[size_++] = c;
    }
    void append(const char* p, Bytes bytes) {
        bytes = min_of(bytes, Capacity - size_);
        std::memcpy(buffer_ + size_, p, bytes);
        size_ += bytes;
    }

    Bytes size_ = 0;
    char buffer_[Capacity];
};

// The length in bytes of the UTF-8 character that begins at `p`, or 0 if there is none. Overlong forms, surrogates and
// values beyond the last character count as none.
inline Bytes utf8_length(const char* p, Bytes bytes) {
    const auto first = static_cast<unsigned char>(p[0]);
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    const Bytes length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length > bytes) return 0;
    for (Bytes i = 1; i < length; ++i)
        if ((static_cast<unsigned char>(p[i]) & 0xC0U) != 0x80) return 0;
    const auto second = static_cast<unsigned char>(p[1]);
    const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool no_character = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
    return too_long || no_character ? 0 : length;
}

// The outermost message, written to a file.
class MessageFile {
public:
    explicit MessageFile(const char* path) : file_(os::create_file(path)), error_(min_of(file_, 0L)) {}
    ~MessageFile() {
        if (file_ >= 0) os::close_file(file_);
    }
    MessageFile(const MessageFile&) = delete;
    MessageFile& operator=(const MessageFile&) = delete;

    void number(unsigned field, std::uint64_t value) {
        Message<24> one;
        one.number(field, value);
        append(one.data(), one.size());
    }
    void text(unsigned field, const char* p, Bytes bytes) {
        begin_text(field, bytes);
        append(p, bytes);
    }
    // A text that numalloc did not make. Readers refuse a file with invalid UTF-8, so '?' replaces each invalid byte.
    void foreign_text(unsigned field, const char* p, Bytes bytes) {
        begin_text(field, bytes);
        for (Bytes at = 0; at < bytes;) {
            const Bytes length = utf8_length(p + at, bytes - at);
            append(length != 0 ? p + at : "?", max_of(length, Bytes{1}));
            at += max_of(length, Bytes{1});
        }
    }
    template <Bytes Inner>
    void message(unsigned field, const Message<Inner>& inner) {
        text(field, inner.data(), inner.size());
    }

    // Returns 0, or -errno of the first call that failed.
    long finish() {
        flush();
        return error_;
    }

private:
    void begin_text(unsigned field, Bytes bytes) {
        Message<24> head;
        head.varint(field << 3U | 2U);
        head.varint(bytes);
        append(head.data(), head.size());
    }
    void flush() {
        if (error_ == 0) error_ = os::write_all(file_, buffer_, size_);
        size_ = 0;
    }
    void append(const char* p, Bytes bytes) {
        if (size_ + bytes > sizeof buffer_) flush();
        if (bytes > sizeof buffer_) {
            if (error_ == 0) error_ = os::write_all(file_, p, bytes);
            return;
        }
        std::memcpy(buffer_ + size_, p, bytes);
        size_ += bytes;
    }

    long file_;
    long error_;
    Bytes size_ = 0;
    char buffer_[4096];
};

}  // namespace numalloc::profile
