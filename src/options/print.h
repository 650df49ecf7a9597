// Prints an option's value as the text that sets it: the inverse of parse.h.
#pragma once

#include "base/atomic.h"
#include "base/text.h"
#include "options/parse.h"

namespace numalloc {

template <class Out, class E, unsigned N>
void print_word(Out& text, E value, const Word (&words)[N]) {
    for (const Word& word : words)
        if (word.value == number_of(value)) {
            text << word.text;
            return;
        }
}

template <class Out>
void print_Binding(Out& text, Binding value) {
    print_word(text, value, words_of_Binding);
}
template <class Out>
void print_MemoryBinding(Out& text, MemoryBinding value) {
    print_word(text, value, words_of_MemoryBinding);
}
template <class Out>
void print_Interleave(Out& text, Interleave value) {
    print_word(text, value, words_of_Interleave);
}
template <class Out>
void print_HugePages(Out& text, HugePages value) {
    print_word(text, value, words_of_HugePages);
}
template <class Out>
void print_DeepBind(Out& text, DeepBind value) {
    print_word(text, value, words_of_DeepBind);
}
template <class Out>
void print_Flag(Out& text, bool value) {
    text << (value ? '1' : '0');
}
template <class Out>
void print_Path(Out& text, const char* value) {
    text << (value == nullptr ? "none" : value);
}
template <class Out>
void print_Size(Out& text, Bytes value) {
    text << std::uint64_t{value};
}
template <class Out>
void print_Sampling(Out& text, Bytes value) {
    if (value == 0) text << "off";
    else print_Size(text, value);
}
template <class Out>
void print_OneIn(Out& text, std::uint32_t value) {
    if (value != 0) text << "1/";
    text << value;
}
template <class Out>
void print_Milliseconds(Out& text, std::int32_t value) {
    text << value;
}
template <class Out>
void print_Signal(Out& text, int value) {
    if (value == 0) text << "none";
    else text << value;
}

template <class Out>
void print_nodes(Out& text, const os::NodeMask& nodes) {
    const char* separator = "";
    for (unsigned n = nodes.first(); n < os::NodeMask::bits; n = nodes.next(n + 1)) {
        unsigned last = n;
        while (nodes.test(last + 1)) ++last;
        text << separator;
        text << n;
        if (last > n) {
            text << '-';
            text << last;
        }
        separator = ",";
        n = last;
    }
}

template <class Out>
void print_Memory(Out& text, const MemoryPlacement& value) {
    switch (value.kind) {
        case MemoryPlacement::Kind::local: text << "local"; break;
        case MemoryPlacement::Kind::interleave: text << "interleave"; break;
        case MemoryPlacement::Kind::preferred:
            text << "preferred:";
            print_nodes(text, value.nodes);
            break;
        case MemoryPlacement::Kind::bind:
            text << "bind:";
            print_nodes(text, value.nodes);
            break;
    }
}

// set_option() may change some of them at any time.
inline const char* value_now(const char* const& value) { return load_acquire(value); }
inline bool value_now(const bool& value) { return load_relaxed(value); }
inline std::int32_t value_now(const std::int32_t& value) { return load_relaxed(value); }
template <class T>
const T& value_now(const T& value) {
    return value;
}

// Calls each(name, whether it has its default, print) for each option in the table's order; print(text) writes the
// value.
template <class Each>
void for_each_option(Each each) {
#define NUMALLOC_OPTION(name, Kind, default_text, what)                               \
    {                                                                                 \
        kind::Kind by_default{};                                                      \
        parse_##Kind(#default_text, by_default);                                      \
        const kind::Kind now = value_now(options().name);                             \
        each(#name, now == by_default, [&](auto& text) { print_##Kind(text, now); }); \
    }
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
}

}  // namespace numalloc
