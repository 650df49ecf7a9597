// Words to the outside: whole lines on stderr in one write each, without stdio. Notes are
// spoken only under the option `verbose`; errors of the program end it.
#pragma once

#include "base/bits.h"
#include "base/text.h"

namespace numalloc::os {

using Line = Text<512>;

// Writes "numalloc: LINE\n" to stderr, or hands the line to whom set_output() named.
void say(const Line& line);

using Output = void (*)(const char* line, void* argument);
void set_output(Output take, void* argument);

// The same, a backtrace if somebody named its maker, then abort(). `what`: found the fault, such as the call.
[[noreturn]] void die(const Line& line, const char* what = "found");

// Says the calling thread's stack below the line that came last; from the instruction `from` on, where that is not 0. It may be
// called with any lock held, and in a handler of signals.
using Backtrace = void (*)(const char* what, Address from);
void set_backtrace(Backtrace say_stack);
void say_backtrace(const char* what, Address from);

}  // namespace numalloc::os
