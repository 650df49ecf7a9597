// The end of a program that freed what it must not: one line, a backtrace where the option asks for it, then abort.
#pragma once

#include "base/bits.h"

namespace numalloc {

// "numalloc: CALL(0x...): WHY"
[[noreturn]] void die_of_invalid_pointer(const char* call, const void* p, const char* why);
// Of a free object that is not as it was left, or leads to what is no object. `call`: what met it, for the backtrace: "malloc"
// or "free", or "giving back" where a list goes home, which calls of both kinds and the ends of threads have done.
[[noreturn]] NUMALLOC_COLD void die_of_damage(const void* object, const char* call);

}  // namespace numalloc
