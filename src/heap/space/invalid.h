// The end of a program that freed what it must not: one line, then abort. The clean place where
// a hardened mode will say more.
#pragma once

#include "base/bits.h"

namespace numalloc {

// "numalloc: CALL(0x...): WHY"
[[noreturn]] void die_of_invalid_pointer(const char* call, const void* p, const char* why);
// Of a free object that is not as it was left, or leads to what is no object.
[[noreturn]] NUMALLOC_COLD void die_of_damage(const void* object);

}  // namespace numalloc
