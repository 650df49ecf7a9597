// Words to the outside: whole lines on stderr in one write each, without stdio. Notes are
// spoken only under the option `verbose`; errors of the program end it.
#pragma once

#include "base/text.h"

namespace numalloc::os {

using Line = Text<512>;

// Writes "numalloc: LINE\n" to stderr.
void say(const Line& line);

// The same, then abort().
[[noreturn]] void die(const Line& line);

}  // namespace numalloc::os
