// Words to the outside: whole lines on stderr in one write each, without stdio. Notes are
// spoken only under the option `verbose`; errors of the program end it.
#pragma once

#include "base/text.h"

namespace numalloc::os {

using Line = Text<512>;

// Writes "numalloc: LINE\n" to stderr, or hands the line to whom set_output() named.
void say(const Line& line);

using Output = void (*)(const char* line, void* argument);
void set_output(Output take, void* argument);

// The same, then abort().
[[noreturn]] void die(const Line& line);

}  // namespace numalloc::os
