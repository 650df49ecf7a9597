// Protocol buffers' wire format, as far as a profile needs it: numbers, texts, messages in messages.
#pragma once

#include <cstring>

#include "base/bits.h"
#include "os/file.h"

namespace numalloc::profile {

// A message that is built in memory; what does not fit is cut, so its maker knows how long it can be.
template <Bytes Capacity>
class Message {
public:
    // Zero is what a reader takes for a number that is not there.
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
    void message(unsigned field, const Message<Inner>& inner) { text(field, inner.data(), inner.size()); }

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

// The outermost message, on its way into a file.
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
        Message<24> head;
        head.varint(field << 3U | 2U);
        head.varint(bytes);
        append(head.data(), head.size());
        append(p, bytes);
    }
    template <Bytes Inner>
    void message(unsigned field, const Message<Inner>& inner) { text(field, inner.data(), inner.size()); }

    // 0, or -errno of the first that failed.
    long finish() {
        flush();
        return error_;
    }

private:
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
