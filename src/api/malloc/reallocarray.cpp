// reallocarray calls realloc by its public name, as libc's does: a program that replaces malloc and its relatives, or a
// library that wraps them, need not define it (the manual of glibc, "Replacing malloc").
#include <cstdlib>

#include "api/export.h"
#include "api/malloc/allocate.h"

extern "C" NUMALLOC_EXPORT void* reallocarray(void* p, size_t count, size_t size) noexcept {
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) return numalloc::api::no_memory();
    return std::realloc(p, n);
}
