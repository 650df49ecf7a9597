// Assertions, absent from a release build: cheap enough for every call. What walks structures is a validate() that
// tests call. `cmake --preset debug` has both.
#pragma once

namespace numalloc {

// Writes one line on stderr and aborts. Defined on the os floor, which owns the system calls.
[[noreturn]] void assertion_failed(const char* what, const char* file, int line);

#if defined(NUMALLOC_CHECKS)
constexpr bool checks_enabled = true;
#define NUMALLOC_ASSERT(condition)                                                                               \
    (__builtin_expect(!!(condition), 1) ? void() : ::numalloc::assertion_failed(#condition, __FILE__, __LINE__))
#else
constexpr bool checks_enabled = false;
#define NUMALLOC_ASSERT(condition) (true ? void() : void(condition))
#endif

}  // namespace numalloc
