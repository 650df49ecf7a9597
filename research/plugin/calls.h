// SPDX-License-Identifier: GPL-2.0-or-later
// Calls of the allocator: what was asked for and which address came back. A function is known by where it lies in its
// page and by its first bytes, so that it is found wherever its library is loaded.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace scope {

enum class Function : uint8_t { MALLOC, CALLOC, REALLOC, REALLOCARRAY, ALIGNED, POSIX, FREE };
constexpr std::array<std::string_view, 7> FUNCTIONS = {"malloc",  "calloc", "realloc", "reallocarray",
                                                       "aligned", "posix",  "free"};

struct Entry {
    Function function;
    unsigned offset;  // in its page
    std::vector<uint8_t> code;
};

// What it was called with, as far as it matters.
struct Call {
    uint64_t stack;  // where its return address is
    uint64_t size;
    uint64_t before;  // what realloc is to replace
    uint64_t result;  // where posix_memalign puts the address; 0: it is returned
};

// From the first three arguments.
inline Call call_of(Function function, uint64_t stack, uint64_t first, uint64_t second, uint64_t third) {
    switch (function) {
        case Function::CALLOC: return {stack, first * second, 0, 0};
        case Function::REALLOC: return {stack, second, first, 0};
        case Function::REALLOCARRAY: return {stack, second * third, first, 0};
        case Function::ALIGNED: return {stack, second, 0, 0};
        case Function::POSIX: return {stack, third, 0, first};
        default: return {stack, first, 0, 0};
    }
}

// Those that a thread is in, the outermost first.
class Calls {
public:
    // Who calls from a higher place of the stack, or the same, has left those below, whichever way.
    void begin(const Call& call) {
        while (!calls_.empty() && calls_.back().stack <= call.stack) calls_.pop_back();
        if (calls_.size() < DEEPEST) calls_.push_back(call);
    }
    Call end() {
        const Call last = calls_.back();
        calls_.pop_back();
        return last;
    }
    // The place of the return address of the innermost; 0 if there is none.
    uint64_t awaited() const { return calls_.empty() ? 0 : calls_.back().stack; }

private:
    static constexpr size_t DEEPEST = 16;

    std::vector<Call> calls_;
};

}  // namespace scope
