// Parsers for the text of each kind of option. A parser takes a whole value. If it does not understand all of it, it
// returns false and leaves the result unchanged.
#pragma once

#include <csignal>
#include <initializer_list>

#include "base/number_list.h"
#include "options/options.h"

namespace numalloc {

struct Word {
    const char* text;
    int value;
};

constexpr bool same(const char* a, const char* b) {
    while (*a != '\0' && *a == *b) ++a, ++b;
    return *a == *b;
}

template <class T, unsigned N>
constexpr bool parse_word(const char* text, const Word (&words)[N], T& result) {
    for (const Word& word : words)
        if (same(text, word.text)) return result = static_cast<T>(word.value), true;
    return false;
}

template <class E>
constexpr int number_of(E e) {
    return static_cast<int>(e);
}

inline constexpr Word words_of_Binding[] = {{"auto", number_of(Binding::automatic)},
                                            {"interleave", number_of(Binding::interleave)},
                                            {"saturate", number_of(Binding::saturate)},
                                            {"file", number_of(Binding::file)},
                                            {"none", number_of(Binding::none)}};
constexpr bool parse_Binding(const char* text, Binding& result) { return parse_word(text, words_of_Binding, result); }

inline constexpr Word words_of_MemoryBinding[] = {{"preferred", number_of(MemoryBinding::preferred)},
                                                  {"strict", number_of(MemoryBinding::strict)},
                                                  {"none", number_of(MemoryBinding::none)}};
constexpr bool parse_MemoryBinding(const char* text, MemoryBinding& result) {
    return parse_word(text, words_of_MemoryBinding, result);
}

constexpr bool parse_Memory(const char* text, MemoryPlacement& result) { return parse_memory_placement(text, result); }

inline constexpr Word words_of_Interleave[] = {{"off", number_of(Interleave::off)},
                                               {"serial", number_of(Interleave::serial)},
                                               {"all", number_of(Interleave::all)}};
constexpr bool parse_Interleave(const char* text, Interleave& result) {
    return parse_word(text, words_of_Interleave, result);
}

inline constexpr Word words_of_HugePages[] = {{"system", number_of(HugePages::system)},
                                              {"auto", number_of(HugePages::automatic)},
                                              {"on", number_of(HugePages::on)},
                                              {"off", number_of(HugePages::off)}};
constexpr bool parse_HugePages(const char* text, HugePages& result) {
    return parse_word(text, words_of_HugePages, result);
}

inline constexpr Word words_of_DeepBind[] = {
    {"share", number_of(DeepBind::share)}, {"drop", number_of(DeepBind::drop)}, {"keep", number_of(DeepBind::keep)}};
constexpr bool parse_DeepBind(const char* text, DeepBind& result) {
    return parse_word(text, words_of_DeepBind, result);
}

inline constexpr Word words_of_Flag[] = {{"0", 0}, {"1", 1}, {"off", 0}, {"on", 1}, {"no", 0}, {"yes", 1}};
constexpr bool parse_Flag(const char* text, bool& result) { return parse_word(text, words_of_Flag, result); }

// nullptr: no file.
constexpr bool parse_Path(const char* text, const char*& result) {
    if (*text == '\0') return false;
    result = same(text, "none") ? nullptr : text;
    return true;
}

// Not the signals that the kernel or libc reserve, nor those of faults: the program would repeat the fault for ever.
constexpr bool may_be_handled(long number) {
    for (const long not_this : {SIGKILL, SIGSTOP, 32, 33, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS})
        if (number == not_this) return false;
    return true;
}

// By name, with or without SIG, or by number; 0 means none.
inline constexpr Word words_of_Signal[] = {{"none", 0},       {"HUP", SIGHUP},     {"USR1", SIGUSR1},
                                           {"USR2", SIGUSR2}, {"WINCH", SIGWINCH}, {"PROF", SIGPROF}};
constexpr bool parse_Signal(const char* text, int& result) {
    const char* p = text;
    if (const long number = take_number(p); number > 0) {
        if (*p != '\0' || number > 64 || !may_be_handled(number)) return false;
        result = static_cast<int>(number);
        return true;
    }
    if (text[0] == 'S' && text[1] == 'I' && text[2] == 'G') text += 3;
    return parse_word(text, words_of_Signal, result);
}

constexpr bool parse_Milliseconds(const char* text, std::int32_t& result) {
    if (same(text, "-1")) return result = -1, true;
    const char* p = text;
    long value = take_number(p);
    if (value < 0) return false;
    if (same(p, "s")) value *= 1000;
    else if (*p != '\0' && !same(p, "ms")) return false;
    if (value > INT32_MAX) return false;
    result = static_cast<std::int32_t>(value);
    return true;
}

constexpr bool parse_Size(const char* text, Bytes& result) {
    if (*text < '0' || *text > '9') return false;
    Bytes value = 0;
    for (; *text >= '0' && *text <= '9'; ++text)
        if (__builtin_mul_overflow(value, Bytes{10}, &value) ||
            __builtin_add_overflow(value, static_cast<Bytes>(*text - '0'), &value))
            return false;
    Bytes unit = 1;
    switch (*text) {
        case 'k':
        case 'K': unit = KiB; break;
        case 'm':
        case 'M': unit = MiB; break;
        case 'g':
        case 'G': unit = GiB; break;
        case 't':
        case 'T': unit = TiB; break;
        default: break;
    }
    if (unit > 1) {
        ++text;
        if (same(text, "B") || same(text, "iB")) text = "";
    }
    if (*text != '\0' || __builtin_mul_overflow(value, unit, &value)) return false;
    result = value;
    return true;
}

// Bytes between two samples; 0 means none.
constexpr Bytes usual_sampling = 512 * KiB;
constexpr bool parse_Sampling(const char* text, Bytes& result) {
    if (same(text, "off")) return result = 0, true;
    if (same(text, "on")) return result = usual_sampling, true;
    Bytes bytes = 0;
    if (!parse_Size(text, bytes) || bytes > GiB) return false;
    result = bytes;
    return true;
}

// 1/N gives N; 0 means none.
constexpr bool parse_OneIn(const char* text, std::uint32_t& result) {
    if (same(text, "off")) return result = 0, true;
    constexpr long largest = 1000000000;
    const bool part = text[0] == '1' && text[1] == '/';
    const char* p = part ? text + 2 : text;
    const long number = take_number(p);
    if (number < 0 || number > largest || *p != '\0' || (part && number == 0)) return false;
    result = static_cast<std::uint32_t>(number);
    return true;
}

// A default that its own kind rejects does not compile.
#define NUMALLOC_OPTION(name, Kind, default_text, what) \
    static_assert([] {                                  \
        kind::Kind value{};                             \
        return parse_##Kind(#default_text, value);      \
    }());
#include "numalloc/options.def"
#undef NUMALLOC_OPTION

}  // namespace numalloc
