// Any environment, a variable a line. A complaint is one line. Who is complained of changes nothing. And what an option
// becomes is what its own lines make of it, whatever stands in the others.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "options/options.h"

namespace {

using namespace numalloc;

unsigned complaints = 0;

Options parsed(std::vector<const char*> lines) {
    lines.push_back(nullptr);
    Options options;
    parse_options(options, lines.data(), [](const char* line) {
        ++complaints;
        if (std::strchr(line, '\n') != nullptr || std::strlen(line) > 4096) __builtin_trap();
    });
    return options;
}

void same(const Options& a, const Options& b) {
#define NUMALLOC_OPTION(name, Kind, default_text, what) \
    if (!(a.name == b.name)) __builtin_trap();
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
}

std::string variable(std::string_view option) {
    std::string name = "NUMALLOC_";
    for (char c : option) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return name + '=';
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<const char*> lines{text.c_str()};
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '\n') text[i] = '\0', lines.push_back(text.c_str() + i + 1);

    const Options defaults = parsed({});
    for (const char* line : lines) {
        complaints = 0;
        const Options alone = parsed({line});
        if (complaints > 0) same(alone, defaults);
    }
    const Options all = parsed(lines);
#define NUMALLOC_OPTION(name, Kind, default_text, what)               \
    {                                                                 \
        static const std::string own = variable(#name);               \
        std::vector<const char*> of_it;                               \
        for (const char* line : lines)                                \
            if (std::strncmp(line, own.c_str(), own.size()) == 0) of_it.push_back(line); \
        if (!(parsed(of_it).name == all.name)) __builtin_trap();      \
    }
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    return 0;
}
