// Text of any length, passed on piece by piece: no allocation and little stack, so that a signal handler can write it.
#pragma once

#include "base/text.h"

namespace numalloc {

class Output {
public:
    using Write = void (*)(void* context, const char* text, std::size_t length);
    Output(Write write, void* context) : write_(write), context_(context) {}
    ~Output() { flush(); }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    template <class T>
    Output& operator<<(T value) {
        Text<32> piece;
        piece << value;
        append(piece.c_str(), piece.size());
        return *this;
    }
    Output& operator<<(const char* s) {
        append(s, strlen(s));
        return *this;
    }
    // Pads with spaces to `width`: numbers are aligned right, words left.
    Output& column(std::uint64_t value, std::size_t width) {
        Text<32> piece;
        piece << value;
        for (std::size_t i = piece.size(); i < width; ++i) *this << ' ';
        return *this << piece.c_str();
    }
    Output& column(const char* word, std::size_t width) {
        *this << word;
        for (std::size_t i = strlen(word); i < width; ++i) *this << ' ';
        return *this;
    }

private:
    void append(const char* s, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            if (size_ == sizeof buffer_) flush();
            buffer_[size_++] = s[i];
        }
    }
    void flush() {
        if (size_ > 0) write_(context_, buffer_, size_);
        size_ = 0;
    }

    Write write_;
    void* context_;
    std::size_t size_ = 0;
    char buffer_[512];
};

}  // namespace numalloc
