// The lists of /sys, of our placement files and of the shell: "0-3,8,10-11".
#pragma once

namespace numalloc {

// A number at `p`, which moves behind it. -1 where no digit stands or the number is absurd.
constexpr long take_number(const char*& p) {
    if (*p < '0' || *p > '9') return -1;
    long value = 0;
    while (*p >= '0' && *p <= '9') {
        value = value * 10 + (*p++ - '0');
        if (value > 1'000'000'000) return -1;
    }
    return value;
}

// Calls each(first, last) for every range of the list at `p` and stops behind it, at the first
// character that is no part of a list. False, with `p` at the fault, for what is not a list;
// the ranges before the fault have been delivered then.
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
