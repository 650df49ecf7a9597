// Replaces libc's functions as a library with registered memory does. Each call allocates, frees earlier blocks, and
// changes errno.
#define _GNU_SOURCE
#include "registered.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kept = 64 };
static atomic_ulong calls;
static _Atomic(char*) keep[kept];

unsigned long heard(void) { return calls; }

static void use_malloc(unsigned long number) {
    static const size_t sizes[] = {24, 100, 1000, 5000, 40000, 300000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const size_t n = sizes[i] + number % 16;
        char* p = number % 2 ? malloc(n) : calloc(1, n);
        if (p == NULL) abort();
        p[0] = p[n - 1] = 1;
        p = realloc(p, 2 * n);
        if (p == NULL || p[0] != 1 || p[n - 1] != 1) abort();
        p = atomic_exchange(&keep[(number + i * 9) % kept], p);
        if (p != NULL && *p != 1) abort();
        free(p);
    }
}

// What these functions allocate and free must not call them again: there would be no end.
static __thread int inside;

// A library in C++ cannot use its tables before.
static int constructed;
__attribute__((constructor)) static void construct(void) { constructed = 1; }

static void note(void) {
    if (!constructed) abort();
    const unsigned long number = ++calls;
    if (inside) abort();
    inside = 1;
    use_malloc(number);
    inside = 0;
    errno = 4712;
}
int munmap(void* p, size_t n) {
    note();
    return (int)syscall(SYS_munmap, p, n);
}
int madvise(void* p, size_t n, int advice) {
    note();
    return (int)syscall(SYS_madvise, p, n, advice);
}
void* mremap(void* p, size_t old, size_t n, int flags, ...) {
    note();
    va_list more;
    va_start(more, flags);
    void* const to = va_arg(more, void*);
    va_end(more);
    return (void*)syscall(SYS_mremap, p, old, n, flags, to);
}
void* mmap(void* p, size_t n, int access, int flags, int file, off_t at) {
    note();
    return (void*)syscall(SYS_mmap, p, n, access, flags, file, at);
}
