// Messages of the library: whole lines on stderr, one write each, without stdio. Notes are printed only with the option
// `verbose`. A message about an error of the program ends the process.
#pragma once

#include "base/bits.h"
#include "base/text.h"

namespace numalloc::os {

using Line = Text<512>;

// Writes "numalloc: LINE\n" to stderr, or passes the line to the function of set_output().
void say(const Line& line);

using Output = void (*)(const char* line, void* argument);
void set_output(Output take, void* argument);

// Calls say() and say_caller(), then abort(). `what`: the call that found the error.
[[noreturn]] void die(const Line& line, const char* what = "found");

// Writes the calling thread's stack below the last line, by the function of set_say_caller(); nothing without one.
// `from`: the instruction that faulted, or 0. Callers may hold any lock, or be in a signal handler.
void say_caller(const char* what, Address from);

using SayStack = void (*)(const char* what, Address from);
void set_say_caller(SayStack say_stack);

}  // namespace numalloc::os
