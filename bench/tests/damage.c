// A malloc that damages live objects: the system's own, but every so often a byte of the object
// allocated before, if that is still in use, is turned over: the last that was asked for, or with
// BENCH_DAMAGE=text a letter in the middle: a damaged pointer would only crash. For the test that each
// benchmark program notices.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

// Of this thread, so that no other thread can have freed it meanwhile unnoticed.
static __thread unsigned char *byte_of_it;
static __thread uintptr_t last_object;
static __thread unsigned allocations;

static void *note(void *object, size_t size) {
    const char *const what = getenv("BENCH_DAMAGE");
    const int only_text = what != NULL && strcmp(what, "text") == 0;
    if (object == NULL) return object;
    if (++allocations % 16 == 0 && byte_of_it != NULL) {
        // A multiple of 16 could be the low byte of a pointer.
        if (!only_text) *byte_of_it ^= 0xff;
        if (only_text && *byte_of_it > 'a' && *byte_of_it < 'z' && *byte_of_it % 16 != 0) *byte_of_it ^= 1;
    }
    last_object = (uintptr_t)object;
    const size_t at = only_text ? size / 2 / 16 * 16 : size - 1;
    byte_of_it = size == 0 ? NULL : (unsigned char *)object + at;
    return object;
}

static void forget(const void *object) {
    if ((uintptr_t)object == last_object) byte_of_it = NULL;
}

void *malloc(size_t size) { return note(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return note(__libc_calloc(count, size), count * size); }
void *aligned_alloc(size_t alignment, size_t size) { return note(__libc_memalign(alignment, size), size); }
int posix_memalign(void **object, size_t alignment, size_t size) {
    *object = note(__libc_memalign(alignment, size), size);
    return *object == NULL ? 12 : 0;
}
void *realloc(void *object, size_t size) {
    forget(object);
    return note(__libc_realloc(object, size), size);
}
void free(void *object) {
    forget(object);
    __libc_free(object);
}
