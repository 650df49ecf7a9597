// Any environment, a variable a line: parse_options must not fail, and what it understands of one option must be the
// same without the other lines.
#include <cstring>
#include <string>
#include <vector>

#include "options/options.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace numalloc;
    std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<const char*> lines{text.c_str()};
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\n') text[i] = '\0', lines.push_back(text.c_str() + i + 1);
    lines.push_back(nullptr);

    // A complaint is one line, whatever was in the value.
    const auto complain = [](const char* line) {
        if (std::strchr(line, '\n') != nullptr || std::strlen(line) > 4096) __builtin_trap();
    };
    Options once, twice;
    parse_options(once, lines.data(), complain);
    parse_options(twice, lines.data(), complain);
#define NUMALLOC_OPTION(name, Kind, default_text, what) \
    if (!(once.name == twice.name)) __builtin_trap();
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    return 0;
}
