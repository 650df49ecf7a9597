#include "placement/rule_file.h"

#include <cstring>

#include "base/number_list.h"
#include "os/memory.h"
#include "os/messages.h"
#include "os/sysfs.h"

namespace numalloc::placement {

namespace {

const char* skip_blanks(const char* p) {
    while (*p == ' ' || *p == '\t' || *p == '\r') ++p;
    return p;
}

bool ends_line(const char* p) { return *p == '\0' || *p == '\n' || *p == '#'; }

}  // namespace

const char* RuleFile::parse_line(const char* p, const Places& places, long& bad_node) {
    // Threads first: their ranges are completed when the nodes are known.
    const std::uint32_t first_range = range_count_;
    const std::uint32_t first_place_range = place_range_count_;
    std::uint32_t position = 0;
    const bool has_threads = take_list(p, [&](unsigned first, unsigned last) {
        ranges_[range_count_++] = {first, last, position, first_place_range, 0};
        position += last - first + 1;
    });
    if (!has_threads || (*p != ' ' && *p != '\t')) return "expected THREADS NODES, such as 0-3 1";
    p = skip_blanks(p);
    std::uint32_t nodes = 0;
    long bad = -1;
    const bool has_nodes = take_list(p, [&](unsigned first, unsigned last) {
        for (unsigned n = first; n <= last && bad < 0; ++n) {
            const PlaceId place = places.of_os_node(static_cast<int>(n));
            if (place == no_place || places[place].cpus == 0) bad = static_cast<long>(n);
        }
        if (bad >= 0) return;
        place_ranges_[place_range_count_++] = {places.of_os_node(static_cast<int>(first)).value, last - first + 1};
        nodes += last - first + 1;
    });
    if (!has_nodes) return "expected a list of nodes, such as 0-1,4";
    if (!ends_line(skip_blanks(p))) return "too many words";
    bad_node = bad;
    if (bad >= 0) return "has no CPUs that this process may use";
    for (std::uint32_t r = first_range; r < range_count_; ++r) ranges_[r].places = nodes;
    return nullptr;
}

void RuleFile::parse(const char* text, const char* name, const Places& places, Complain complain) {
    if (!make_room(std::strlen(text))) {
        complain("no memory for the binding file; threads are interleaved");
        return;
    }
    unsigned line_number = 0;
    for (const char* line = text; *line != '\0';) {
        ++line_number;
        const std::uint32_t old_ranges = range_count_;
        const std::uint32_t old_place_ranges = place_range_count_;
        const char* const p = skip_blanks(line);
        long bad_node = -1;
        if (const char* const fault = ends_line(p) ? nullptr : parse_line(p, places, bad_node); fault != nullptr) {
            os::Line complaint;
            complaint << name << ':' << line_number << ": ";
            if (bad_node >= 0) complaint << "node " << static_cast<std::int64_t>(bad_node) << ' ';
            complaint << fault << "; line ignored";
            complain(complaint.c_str());
            range_count_ = old_ranges;
            place_range_count_ = old_place_ranges;
        }
        while (*line != '\0' && *line != '\n') ++line;
        if (*line == '\n') ++line;
    }
}

// A range takes at least a digit and a separator.
bool RuleFile::make_room(Bytes text_length) {
    const Bytes capacity = text_length / 2 + 1;
    void* memory = os::map(align_up(capacity * (sizeof(Range) + sizeof(PlaceRange)), os::page_size()));
    if (memory == nullptr) return false;
    ranges_ = static_cast<Range*>(memory);
    place_ranges_ = reinterpret_cast<PlaceRange*>(ranges_ + capacity);
    return true;
}

void RuleFile::load(const char* path, const Places& places, Complain complain) {
    auto* text = static_cast<char*>(os::map(longest_text));
    const long length = text == nullptr ? -1 : os::read_file(path, text, longest_text);
    if (length < 0) {
        os::Line complaint;
        complaint << path << ": cannot be read; threads are interleaved";
        complain(complaint.c_str());
    } else if (static_cast<Bytes>(length) == longest_text - 1) {
        os::Line complaint;
        complaint << path << ": longer than 256 KiB; threads are interleaved";
        complain(complaint.c_str());
    } else {
        parse(text, path, places, complain);
    }
    if (text != nullptr) os::unmap(text, longest_text);
}

PlaceId RuleFile::place_of(unsigned thread) const {
    for (std::uint32_t r = 0; r < range_count_; ++r) {
        const Range& range = ranges_[r];
        if (thread < range.first || thread > range.last) continue;
        std::uint32_t place = (range.position + (thread - range.first)) % range.places;
        const PlaceRange* places = place_ranges_ + range.place_ranges;
        for (; place >= places->count; ++places) place -= places->count;
        return PlaceId{places->first + place};
    }
    return no_place;
}

}  // namespace numalloc::placement
