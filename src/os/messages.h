// Messages of the library: whole lines on stderr, one write each, without stdio. Notes are printed only with the option
// `verbose`. A message about an error of the program ends the process.
#pragma once

#include "base/text.h"

namespace numalloc::os {

using Line = Text<512>;

// Writes "numalloc: LINE\n" to stderr, or passes the line to the function of set_output().
void say(const Line& line);

using Output = void (*)(const char* line, void* argument);
void set_output(Output take, void* argument);

// Calls say(), then abort().
[[noreturn]] void die(const Line& line);

}  // namespace numalloc::os
