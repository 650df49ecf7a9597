// A malloc that damages live objects: the system's own, but every so often a byte of the object
// allocated before, if that is still in use, is turned over: the last that was asked for, or with
// BENCH_DAMAGE=text a letter in the middle: a damaged pointer would only crash. With BENCH_DAMAGE=none it
// damages nothing but refuses every request after the first few. For the test that each benchmark
// program notices.
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

static int refused(void) {
    static unsigned requests;
    const char *const what = getenv("BENCH_DAMAGE");
    return what != NULL && strcmp(what, "none") == 0 && __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) > 24;
}

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

void *malloc(size_t size) { return refused() ? NULL : note(__libc_malloc(size), size); }
// What libc itself asks for to start a thread is served: it ends the process where it gets none. That is
// calloc of entries of 16 bytes; the programs' is of 8.
void *calloc(size_t count, size_t size) {
    return size == 8 && refused() ? NULL : note(__libc_calloc(count, size), count * size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return refused() ? NULL : note(__libc_memalign(alignment, size), size);
}
int posix_memalign(void **object, size_t alignment, size_t size) {
    void *const made = aligned_alloc(alignment, size);
    if (made == NULL) return 12;
    *object = made;
    return 0;
}
// operator new(size_t, std::align_val_t), which returns NULL where it must throw: rpmalloc's does.
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return aligned_alloc(alignment, size); }
void *realloc(void *object, size_t size) {
    if (refused()) return NULL;
    forget(object);
    return note(__libc_realloc(object, size), size);
}
void free(void *object) {
    forget(object);
    __libc_free(object);
}
