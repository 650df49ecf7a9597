// The file of binding=file. One rule a line, THREADS NODES, both lists such as 0-3,8:
//
//     # main and the three I/O threads near the network card
//     0-3    0
//     4-31   1-7
//
// Threads are numbered from 0 (main) in order of creation, nodes as the kernel numbers them.
// The k-th thread of a rule goes to the rule's k-th node, and round again when there are more
// threads than nodes. The first rule that names a thread counts; threads without a rule are
// interleaved. Words behind # are not read. A line that cannot be understood, or names a node
// that the process cannot use, is reported with its number and left out.
#pragma once

#include "base/bits.h"
#include "placement/policy.h"

namespace numalloc::placement {

class RuleFile {
public:
    static constexpr Bytes longest_text = 256 * KiB;

    using Complain = void (*)(const char* line);

    // Reads the rules from `text`; nodes without CPUs of the process are not usable. `name` is
    // for the complaints. The memory is the kernel's, not the heap's. Called once.
    void parse(const char* text, const char* name, const Places& places, Complain complain);

    // Opens, reads and parses; a file that cannot be read is one complaint and no rules.
    void load(const char* path, const Places& places, Complain complain);

    // The place of a thread by its number; no_place where no rule names it.
    PlaceId place_of(unsigned thread) const;

private:
    struct Range {
        std::uint32_t first;
        std::uint32_t last;
        std::uint32_t position;      // of `first` among the rule's threads
        std::uint32_t place_ranges;  // the rule's first in place_ranges_
        std::uint32_t places;        // of the rule, all ranges together
    };
    // All nodes of a range are usable, so their places follow each other.
    struct PlaceRange {
        std::uint32_t first;
        std::uint32_t count;
    };

    bool make_room(Bytes text_length);

    Range* ranges_ = nullptr;
    PlaceRange* place_ranges_ = nullptr;
    std::uint32_t range_count_ = 0;
    std::uint32_t place_range_count_ = 0;
};

}  // namespace numalloc::placement
