// Any text as the file of binding=file, on a machine of 16 nodes: a thread's place is one of them, or none.
#include <cstring>
#include <string>

#include "placement/rule_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace numalloc;
    placement::Place table[16];
    for (unsigned i = 0; i < 16; ++i) table[i] = {0, 2, static_cast<std::uint16_t>(i * 3), NodeId{i}};
    const std::string text(reinterpret_cast<const char*>(data), size);
    placement::RuleFile file;
    file.parse(text.c_str(), "rules", {table, 16}, [](const char* line) {
        if (std::strchr(line, '\n') != nullptr) __builtin_trap();
    });
    for (unsigned thread : {0U, 1U, 7U, 31U, 4096U, 999'999'999U, 1'000'000'000U, ~0U}) {
        const placement::PlaceId place = file.place_of(thread);
        if (place != placement::no_place && place.value >= 16) __builtin_trap();
    }
    return 0;
}
