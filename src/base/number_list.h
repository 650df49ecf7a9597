// Lists of numbers as in /sys, in our placement files and in the shell: "0-3,8,10-11".
#pragma once

namespace numalloc {

// Reads the number at `p` and moves `p` behind it. -1 if there is no digit, or the number exceeds 1,000,000,000.
constexpr long take_number(const char*& p) {
    if (*p < '0' || *p > '9') return -1;
    long value = 0;
    while (*p >= '0' && *p <= '9') {
        value = value * 10 + (*p++ - '0');
        if (value > 1'000'000'000) return -1;
    }
    return value;
}

// Calls each(first, last) for every range of the list at `p` and moves `p` to the first character after the list.
// false, with `p` at the fault, if there is no valid list; the ranges before the fault have been passed to each().
template <class Each>
constexpr bool take_list(const char*& p, Each each) {
    for (;;) {
        const long first = take_number(p);
        if (first < 0) return false;
        long last = first;
        if (*p == '-') {
            ++p;
            last = take_number(p);
            if (last < first) return false;
        }
        each(static_cast<unsigned>(first), static_cast<unsigned>(last));
        if (*p != ',') return true;
        ++p;
    }
}

}  // namespace numalloc
