// The reader of /proc/self/smaps, line by line: a mapping's line, then what is to be said of it.
#pragma once

#include "base/bits.h"
#include "numalloc/numalloc.h"

namespace numalloc {

// `whose(address)`: the statistics that a mapping which begins there counts for, or nullptr.
template <class Whose>
class Smaps {
public:
    explicit Smaps(Whose whose) : whose_(whose) {}
    void line(const char* text) {
        if (const char* rest = after(text, "Rss:")) add(&numalloc_node_statistics::resident_bytes, rest);
        else if (const char* huge = after(text, "AnonHugePages:")) add(&numalloc_node_statistics::huge_bytes, huge);
        else if (is_range(text)) take_range(text);
    }

private:
    // The names of what is said begin with a capital, an address does not.
    static bool is_range(const char* text) { return (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'); }
    static const char* after(const char* text, const char* name) {
        for (; *name != '\0'; ++text, ++name)
            if (*text != *name) return nullptr;
        while (*text == ' ') ++text;
        return text;
    }
    void take_range(const char* text) {
        Address start = 0;
        for (; is_range(text); ++text) start = start * 16 + static_cast<Address>(*text <= '9' ? *text - '0' : *text - 'a' + 10);
        mine_ = whose_(reinterpret_cast<const void*>(start));
    }
    void add(unsigned long long numalloc_node_statistics::*what, const char* text) {
        if (mine_ == nullptr) return;
        Bytes kilobytes = 0;
        for (; *text >= '0' && *text <= '9'; ++text) kilobytes = kilobytes * 10 + static_cast<Bytes>(*text - '0');
        mine_->*what += kilobytes * KiB;
    }

    Whose whose_;
    numalloc_node_statistics* mine_ = nullptr;
};

}  // namespace numalloc
