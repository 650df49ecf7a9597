// SPDX-License-Identifier: GPL-2.0-or-later
// What x86-64's instructions are that numascope treats in a way of their own, by their bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "scope_markers.h"

namespace scope {

constexpr size_t LONGEST_INSTRUCTION = 15;

// With a lock prefix, or an exchange with memory, which needs none.
inline bool is_atomic(const uint8_t* code, size_t size) {
    constexpr uint8_t LOCK = 0xf0, REX = 0x40, XCHG = 0x86, REGISTERS_ONLY = 0xc0;
    constexpr std::string_view PREFIXES = "\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65";
    size_t at = 0;
    while (at < size && PREFIXES.find(static_cast<char>(code[at])) != std::string_view::npos) ++at;
    if (at < size && code[at] == LOCK) return true;
    if (at < size && (code[at] & 0xf0) == REX) ++at;
    return at + 1 < size && (code[at] & 0xfe) == XCHG && code[at + 1] < REGISTERS_ONLY;
}

inline bool is_pause(const uint8_t* code, size_t size) { return size == 2 && code[0] == 0xf3 && code[1] == 0x90; }
// With the prefixes that compilers put before it: for a branch predictor of old, or for bounds.
inline bool is_return(const uint8_t* code, size_t size) {
    constexpr uint8_t RET = 0xc3, RET_AND_POP = 0xc2;
    const size_t at = size > 1 && (code[0] == 0xf3 || code[0] == 0xf2);
    return (size == at + 1 && code[at] == RET) || (size == at + 3 && code[at] == RET_AND_POP);
}

inline bool is_system_call(const uint8_t* code, size_t size) { return size == 2 && code[0] == 0x0f && code[1] == 0x05; }

// In the kernel: mov %rsp, DISPLACEMENT(%rdi) and mov DISPLACEMENT(%rsi), %rsp are where it goes from one task to
// another.
inline bool is_task_switch(const uint8_t* before, size_t size_before, const uint8_t* code, size_t size) {
    constexpr uint8_t SAVE[] = {0x48, 0x89, 0xa7}, LOAD[] = {0x48, 0x8b, 0xa6};
    return size_before == 7 && size == 7 && !memcmp(before, SAVE, 3) && !memcmp(code, LOAD, 3) &&
           !memcmp(before + 3, code + 3, 4);
}

// Which of scope_markers.h it is; 0 for any other instruction.
inline uint32_t marker(const uint8_t* code, size_t size) {
    if (size != 7 || code[0] != 0x0f || code[1] != 0x1f || code[2] != 0x80) return 0;
    uint32_t what;
    memcpy(&what, code + 3, sizeof what);
    return what >= SCOPE_MARK_LAUNCHER && what <= SCOPE_MARK_END ? what : 0;
}

}  // namespace scope
