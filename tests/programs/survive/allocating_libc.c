// A library that replaces functions that the allocator calls when it starts and when a thread starts, and allocates in
// each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

int allocating_libc_calls;

static void allocate(void) {
    static __thread int inside;
    if (inside) return;
    inside = 1;
    __atomic_fetch_add(&allocating_libc_calls, 1, __ATOMIC_RELAXED);
    for (size_t size = 16; size <= (size_t)1 << 20; size *= 4) {
        char *volatile p = malloc(size);
        if (p == NULL) abort();
        p[0] = p[size - 1] = 1;
        free(p);
    }
    inside = 0;
}

#define REPLACE(result, name, parameters, arguments)                              \
    result name parameters {                                                      \
        static result(*libcs) parameters;                                         \
        if (libcs == NULL) libcs = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
        allocate();                                                               \
        return libcs arguments;                                                   \
    }

REPLACE(unsigned long, getauxval, (unsigned long type), (type))
REPLACE(long, sysconf, (int name), (name))
REPLACE(int, pthread_mutexattr_init, (pthread_mutexattr_t * a), (a))
REPLACE(int, pthread_mutexattr_setrobust, (pthread_mutexattr_t * a, int robust), (a, robust))
REPLACE(int, pthread_mutexattr_destroy, (pthread_mutexattr_t * a), (a))
REPLACE(int, pthread_mutex_consistent, (pthread_mutex_t * m), (m))
