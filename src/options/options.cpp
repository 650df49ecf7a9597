#include "options/options.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/atomic.h"
#include "base/experiments.h"
#include "options/parse.h"
#include "os/lock.h"
#include "os/messages.h"

extern "C" __attribute__((weak)) void* __libc_stack_end;  // the number of arguments, as the kernel has left it

namespace numalloc {

namespace {

constexpr const char* prefix = "NUMALLOC_";
// A variable whose name differs from every option by more than this many typing errors is not ours.
constexpr unsigned typing_errors = 2;

constexpr char capital(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// The text after '=' if `entry` is NUMALLOC_<NAME>=value; otherwise nullptr.
const char* value_of(const char* entry, const char* name) {
    for (const char* p = prefix; *p != '\0'; ++p, ++entry)
        if (*entry != *p) return nullptr;
    for (; *name != '\0'; ++name, ++entry)
        if (*entry != capital(*name)) return nullptr;
    return *entry == '=' ? entry + 1 : nullptr;
}

// Levenshtein distance between `name` and `option` in capitals.
unsigned typing_distance(const char* name, std::size_t length, const char* option) {
    constexpr std::size_t longest = 40;
    unsigned row[longest + 1];
    if (length > longest) return ~0U;
    for (std::size_t i = 0; i <= length; ++i) row[i] = static_cast<unsigned>(i);
    for (unsigned line = 1; *option != '\0'; ++option, ++line) {
        unsigned diagonal = row[0];
        row[0] = line;
        for (std::size_t i = 1; i <= length; ++i) {
            const unsigned replaced = diagonal + (name[i - 1] == capital(*option) ? 0U : 1U);
            diagonal = row[i];
            row[i] = min_of(replaced, min_of(row[i], row[i - 1]) + 1);
        }
    }
    return row[length];
}

constexpr const char* names[] = {
#define NUMALLOC_OPTION(name, Kind, default_text, what) #name,
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
};

constexpr const char* experiments_only[] = {
#define NUMALLOC_OPTION(name, Kind, default_text, what)
#define NUMALLOC_EXPERIMENT_OPTION(name, Kind, default_text, what) #name,
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
};

void put_capitals(os::Line& line, const char* name) {
    line << prefix;
    for (; *name != '\0'; ++name) line << capital(*name);
}

// A misspelt name would silently do nothing, so the complaint suggests the most likely option.
void check_name(const char* entry, void (*complain)(const char*)) {
    const char* name = entry;
    for (const char* p = prefix; *p != '\0'; ++p, ++name)
        if (*name != *p) return;
    std::size_t length = 0;
    while (name[length] != '\0' && name[length] != '=') ++length;
    const char* nearest = nullptr;
    unsigned least = typing_errors + 1;
    for (const char* known : names) {
        const unsigned d = typing_distance(name, length, known);
        if (d == 0) return;
        if (d < least) {
            least = d;
            nearest = known;
        }
    }
    for (const char* experiment : experiments_only) {
        if (experiments || name[length] == '\0' || name[length + 1] == '\0' ||
            typing_distance(name, length, experiment) != 0)
            continue;
        os::Line line;
        put_capitals(line, experiment);
        line << " is an option for experiments; this library was built without them (NUMALLOC_EXPERIMENTS=ON).";
        return complain(line.c_str());
    }
    if (nearest == nullptr) return;
    os::Line line;
    line << prefix;
    line.append(name, length) << " is not an option; did you mean ";
    put_capitals(line, nearest);
    line << '?';
    complain(line.c_str());
}

void complain_of_value(const char* name, const char* value, const char* accepted, const char* used,
                       void (*complain)(const char*)) {
    os::Line line;
    put_capitals(line, name);
    constexpr std::size_t shown = 80;  // a longer value would leave no room for what is accepted
    line << '=';
    line.append(value, strnlen(value, shown))
        << (strnlen(value, shown + 1) > shown ? "..." : "") << " is not understood; accepted: " << accepted
        << ". Using " << used << '.';
    complain(line.c_str());
}

constinit Options current{};

}  // namespace

void parse_options(Options& into, const char* const* environment, void (*complain)(const char*)) {
    into = Options{};
#define NUMALLOC_OPTION(name, Kind, default_text, what) parse_##Kind(#default_text, into.name);
#include "numalloc/options.def"
#undef NUMALLOC_OPTION

    if (environment == nullptr) return;
    for (const char* const* entry = environment; *entry != nullptr; ++entry) {
        // Two comparisons reject each foreign variable: most environments have none of ours.
        if ((*entry)[0] != 'N' || (*entry)[1] != 'U') continue;
        check_name(*entry, complain);
#define NUMALLOC_OPTION(name, Kind, default_text, what)                                      \
    if (const char* value = value_of(*entry, #name); value != nullptr && *value != '\0')     \
        if (!parse_##Kind(value, into.name))                                                 \
            complain_of_value(#name, value, kind::Kind##_accepted, #default_text, complain);
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    }
}

const Options& options() { return current; }

namespace {

constexpr char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The caller's text may be freed, so it is copied. Two buffers: a reader may still use the previous path.
os::Lock<os::LockRank::initialise> setting;
constexpr std::size_t path_room = 4096;  // the kernel's limit, with the NUL
const char* kept(const char* path) NUMALLOC_REQUIRES(setting) {
    constinit static char texts[2][path_room];
    constinit static unsigned last = 0;
    if (path == nullptr) return nullptr;
    char* const text = texts[last = 1 - last];
    memcpy(text, path, strlen(path) + 1);
    return text;
}

template <class T>
void set_value(T& value, T to) NUMALLOC_REQUIRES(setting) {
    store_relaxed(value, to);
}
void set_value(const char*& value, const char* to) NUMALLOC_REQUIRES(setting) { store_release(value, kept(to)); }

template <class T>
bool has_room(T) {
    return true;
}
bool has_room(const char* path) { return path == nullptr || strlen(path) < path_room; }

// Paths from the environment are copied: many servers overwrite theirs with a title for ps.
constexpr unsigned path_options = 0
#define NUMALLOC_OPTION(name, Kind, default_text, what) +std::is_same_v<kind::Kind, const char*>
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    ;
using Copies = char[path_options][path_room];

template <class T>
void keep_text(const char*, T&, const T&, Copies&, unsigned&) {}
void keep_text(const char* name, const char*& path, const char* usual, Copies& copies, unsigned& used) {
    char* const copy = copies[used++];
    if (path == nullptr) return;
    if (!has_room(path)) {
        os::Line line;
        put_capitals(line, name);
        line << " is longer than " << std::uint64_t{path_room - 1} << " bytes, as no path may be; it is not used.";
        os::say(line);
        path = usual;
    } else if (usual != nullptr && same(path, usual)) {
        path = usual;  // without a copy, which would make a page resident in every process
    } else {
        path = static_cast<const char*>(memcpy(copy, path, strlen(path) + 1));
    }
}

}  // namespace

bool is_called(const char* option, const char* name) {
    const char* rest = name;
    for (const char* p = prefix; *p != '\0' && capital(*rest) == *p; ++p) ++rest;
    if (static_cast<std::size_t>(rest - name) != strlen(prefix)) rest = name;
    while (*option != '\0' && *option == small(*rest)) ++option, ++rest;
    return *option == *rest;
}

OptionSet set_option(const char* name, const char* text) {
    os::Guard guard(setting);
#define NUMALLOC_OPTION(option, Kind, default_text, what)  \
    if (is_called(#option, name)) return OptionSet::fixed;
#define NUMALLOC_LIVE_OPTION(option, Kind, default_text, what)                                \
    if (is_called(#option, name)) {                                                           \
        kind::Kind value{};                                                                   \
        if (!parse_##Kind(text, value) || !has_room(value)) return OptionSet::not_understood; \
        set_value(current.option, value);                                                     \
        return OptionSet::done;                                                               \
    }
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
    return OptionSet::unknown;
}

namespace {

// Before libc has started, when pre-init arrays run, `environ` is not set: then the environment as the kernel has left
// it, behind the arguments.
const char* const* environment() {
    const bool is_early = environ == nullptr && *program_invocation_name == '\0';
    if (!is_early || &__libc_stack_end == nullptr) return environ;
    const auto* const start = static_cast<const char* const*>(__libc_stack_end);
    const auto arguments = reinterpret_cast<std::uintptr_t>(*start);
    return start + 1 + arguments + 1;
}

}  // namespace

void init_options() {
    const int kept = errno;
    const bool secure = getauxval(AT_SECURE) != 0;
    errno = kept;
    parse_options(current, secure ? nullptr : environment(), [](const char* text) {
        os::Line line;
        line << text;
        os::say(line);
    });
    constinit static Copies copies;
    unsigned used = 0;
#define NUMALLOC_OPTION(name, Kind, default_text, what)      \
    {                                                        \
        kind::Kind usual{};                                  \
        parse_##Kind(#default_text, usual);                  \
        keep_text(#name, current.name, usual, copies, used); \
    }
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
}

}  // namespace numalloc
