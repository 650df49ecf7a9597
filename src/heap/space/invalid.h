// Ends a program that freed a wrong pointer or wrote to a free object: prints one line (and the stack of the call, with
// the option `backtrace`), then aborts.
#pragma once

#include "base/bits.h"

namespace numalloc {

// "numalloc: CALL(0x...): WHY"
[[noreturn]] void die_of_invalid_pointer(const char* call, const void* p, const char* why);
// The same for a wrong call that changed nothing, by a thread that holds no lock: it leaves the fork gate first, so
// that a handler of SIGABRT may go on by siglongjmp(), as those of test frameworks do.
[[noreturn]] void die_of_wrong_call(const char* call, const void* p, const char* why);
// For a free object that was written to, or whose link leads to no object.
[[noreturn]] NUMALLOC_COLD void die_of_damage(const void* object);

}  // namespace numalloc
