// A library whose constructor registers handlers of fork that do all that a handler may do. In C, for libstdc++ would
// call malloc before it: handlers that were registered before the first malloc are the point.
#define _GNU_SOURCE
#include "fork_handlers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int calls[3];
static void (*_Atomic beside)(void);
static atomic_int alone;
static void* kept;

static void use_malloc(void) {
    for (size_t size = 1; size < 3000000; size += size / 2 + 1) {
        char* p = malloc(size);
        if (p == NULL) abort();
        memset(p, 0x5A, size < 4096 ? size : 4096);
        p = realloc(p, size + size / 3 + 1);
        if (p == NULL || p[0] != 0x5A) abort();
        free(kept);
        kept = p;
        free(calloc(3, size));
    }
    void* aligned = NULL;
    if (posix_memalign(&aligned, 4096, 5000) != 0) abort();
    free(aligned);
    pthread_key_t key;
    if (pthread_key_create(&key, free) != 0) abort();
    if (pthread_setspecific(key, malloc(10)) != 0) abort();
    free(pthread_getspecific(key));
    pthread_key_delete(key);
}

static void handle(int which) {
    if (!alone) use_malloc();
    void (*more)(void) = beside;
    if (more != NULL) more();
    if (!alone) use_malloc();
    ++calls[which];
}
static void prepare(void) { handle(0); }
static void in_parent(void) { handle(1); }
static void in_child(void) { handle(2); }

#if defined(BEHIND)
// Registers with libc directly and before numalloc: these handlers run after numalloc's prepare handler and before its
// others.
__attribute__((constructor)) static void begin(void) {
    int (*const libc)(void (*)(void), void (*)(void), void (*)(void), void*) =
        (int (*)(void (*)(void), void (*)(void), void (*)(void), void*))dlsym(RTLD_NEXT, "__register_atfork");
    if (libc == NULL || libc(prepare, in_parent, in_child, NULL) != 0) abort();
}
#else
__attribute__((constructor)) static void begin(void) {
    if (pthread_atfork(prepare, in_parent, in_child) != 0) abort();
}
#endif

void call_beside(void (*function)(void)) { beside = function; }
void call_alone(void (*function)(void)) {
    alone = 1;
    beside = function;
}
int calls_of(int which) { return calls[which]; }
