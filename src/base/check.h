// Assertions, absent from release builds and cheap enough for every call. Checks that walk structures are validate()
// functions, called by tests. `cmake --preset debug` has both.
#pragma once

namespace numalloc {

// Prints one line on stderr and aborts. Defined on the os floor, which owns the system calls.
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
