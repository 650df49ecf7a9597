// The options, read once from the environment: NUMALLOC_<NAME> in capitals. include/numalloc/options.def is the table;
// this file defines what each kind accepts.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "options/memory_placement.h"
#include "os/memory.h"

namespace numalloc {

enum class Binding : std::uint8_t { automatic, interleave, saturate, file, none };
enum class MemoryBinding : std::uint8_t { preferred, strict, none };
enum class Interleave : std::uint8_t { off, serial, all };
enum class DeepBind : std::uint8_t { share, drop, keep };
enum class HugePages : std::uint8_t { system, automatic, on, off };

// The type of each kind in the program, and the text it accepts.
//   kind           type            accepted
#define NUMALLOC_OPTION_KINDS(KIND)                                                              \
    KIND(Binding, Binding, "auto, interleave, saturate, file, none")                             \
    KIND(MemoryBinding, MemoryBinding, "preferred, strict, none")                                \
    KIND(Memory, MemoryPlacement, "local, interleave, preferred:NODE, bind:NODES such as 0-3,8") \
    KIND(Interleave, Interleave, "off, serial, all")                                             \
    KIND(HugePages, HugePages, "system, auto, on, off")                                          \
    KIND(DeepBind, DeepBind, "share, drop, keep")                                                \
    KIND(Path, const char*, "a path, or none")                                                   \
    KIND(Milliseconds, std::int32_t, "milliseconds, a number with ms or s, or -1 for never")     \
    KIND(Size, Bytes, "bytes, or a number with K, M, G or T")                                    \
    KIND(Signal, int, "USR1, USR2, HUP, WINCH, PROF, another signal's number, or none")          \
    KIND(Sampling, Bytes, "off, on (512K), or bytes up to 1G: a number, or one with K, M or G")  \
    KIND(OneIn, std::uint32_t, "1/N or N, up to 1000000000, or 0 or off for none")               \
    KIND(Flag, bool, "0, 1, off, on, no, yes")

namespace kind {
#define NUMALLOC_KIND(name, type, accepted)           \
    using name = type;                                \
    constexpr const char* name##_accepted = accepted;
NUMALLOC_OPTION_KINDS(NUMALLOC_KIND)
#undef NUMALLOC_KIND
}  // namespace kind

struct Options {
#define NUMALLOC_OPTION(name, Kind, default_text, what) kind::Kind name{};
#include "numalloc/options.def"
#undef NUMALLOC_OPTION
};

// Constant after init_options(), except for what set_option() changes; all zero before.
const Options& options();

// Reads the environment, unless the process runs with raised privileges (AT_SECURE): its caller must not control it. A
// bad value prints one line on stderr, and the default is used. Called once, before any other thread uses the library.
// Allocates nothing; keeps errno.
void init_options();

// Whether `name`, as in the table or as in the environment, names the table's `option`.
bool is_called(const char* option, const char* name);

enum class OptionSet { done, unknown, not_understood, fixed };
// Sets an option that may change while the program runs. Thread-safe. The caller must apply the consequences.
OptionSet set_option(const char* name, const char* text);

// As init_options(), for any environment: a list of "NAME=value" that ends with nullptr. Calls `complain` for each
// complaint.
void parse_options(Options& into, const char* const* environment, void (*complain)(const char* line));

}  // namespace numalloc
