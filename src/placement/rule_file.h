// The file of binding=file. Each line is a rule, THREADS NODES, both lists such as 0-3,8:
//
//     # main and the three I/O threads near the network card
//     0-3    0
//     4-31   1-7
//
// Threads are numbered from 0 (main) in order of creation, nodes by the kernel. The k-th thread of a rule goes to the
// rule's k-th node; if there are more threads than nodes, they begin again with the first node. The first rule that
// names a thread applies; threads without a rule are interleaved. Text after # is ignored. A line that is malformed, or
// names a node that the process cannot use, is reported with its number and ignored.
#pragma once

#include "base/bits.h"
#include "placement/choose_place.h"

namespace numalloc::placement {

class RuleFile {
public:
    static constexpr Bytes longest_text = 256 * KiB;

    using Complain = void (*)(const char* line);

    // Reads the rules from `text`; a node without CPUs of the process is not usable. `name` is for the complaints. Maps
    // its memory from the kernel. Called once.
    void parse(const char* text, const char* name, const Places& places, Complain complain);

    // Opens, reads and parses the file; if it cannot be read, complains once and has no rules.
    void load(const char* path, const Places& places, Complain complain);

    // The place of the thread with this number; no_place if no rule names it.
    PlaceId place_of(unsigned thread) const;

private:
    struct Range {
        std::uint32_t first;
        std::uint32_t last;
        std::uint32_t position;      // of `first` among the rule's threads
        std::uint32_t place_ranges;  // index of the rule's first entry in place_ranges_
        std::uint32_t places;        // of the rule, in all its ranges
    };
    // All nodes of a range are usable, so their places are consecutive.
    struct PlaceRange {
        std::uint32_t first;
        std::uint32_t count;
    };

    // Reads the rule at `p`. Returns nullptr, or what is wrong; with `bad_node`, unless that is negative.
    const char* parse_line(const char* p, const Places& places, long& bad_node);
    bool make_room(Bytes text_length);

    Range* ranges_ = nullptr;
    PlaceRange* place_ranges_ = nullptr;
    std::uint32_t range_count_ = 0;
    std::uint32_t place_range_count_ = 0;
};

}  // namespace numalloc::placement
