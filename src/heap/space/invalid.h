// The end of a program that freed what it must not: one line, then abort. The clean place where
// a hardened mode will say more.
#pragma once

namespace numalloc {

// "numalloc: CALL(0x...): WHY"
[[noreturn]] void die_of_invalid_pointer(const char* call, const void* p, const char* why);

}  // namespace numalloc
