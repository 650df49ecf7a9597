// Where malloc's memory comes from, and its text form: the grammar of the option `memory` and of
// numalloc_set_thread_placement().
#pragma once

#include <cstdint>

#include "base/number_list.h"
#include "os/numa_policy.h"

namespace numalloc {

struct MemoryPlacement {
    enum class Kind : std::uint8_t {
        local,       // the thread's home node
        interleave,  // all nodes, page by page
        preferred,   // the nearest of `nodes`; the text can name only one
        bind,        // the nearest of `nodes`, and no others
    };
    Kind kind = Kind::local;
    os::NodeMask nodes;  // the kernel's numbers
    bool operator==(const MemoryPlacement&) const = default;
};

constexpr bool names_nodes(const MemoryPlacement& m) {
    return m.kind == MemoryPlacement::Kind::preferred || m.kind == MemoryPlacement::Kind::bind;
}

// Parses the whole text; false leaves `result` unchanged.
constexpr bool parse_memory_placement(const char* text, MemoryPlacement& result) {
    const auto begins = [&](const char* word) {
        const char* p = text;
        for (; *word != '\0'; ++p, ++word)
            if (*p != *word) return false;
        text = p;
        return true;
    };
    MemoryPlacement m;
    if (begins("local")) {
        m.kind = MemoryPlacement::Kind::local;
    } else if (begins("interleave")) {
        m.kind = MemoryPlacement::Kind::interleave;
    } else if (begins("preferred:")) {
        m.kind = MemoryPlacement::Kind::preferred;
        const long node = take_number(text);
        if (node < 0 || node >= long{os::max_os_nodes}) return false;
        m.nodes.add(static_cast<unsigned>(node));
    } else if (begins("bind:")) {
        m.kind = MemoryPlacement::Kind::bind;
        bool in_range = true;
        const bool list = take_list(text, [&](unsigned first, unsigned last) {
            if (last >= os::max_os_nodes) in_range = false;
            for (unsigned n = first; in_range && n <= last; ++n) m.nodes.add(n);
        });
        if (!list || !in_range) return false;
    } else {
        return false;
    }
    if (*text != '\0') return false;
    result = m;
    return true;
}

}  // namespace numalloc
