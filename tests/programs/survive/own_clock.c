// A library that replaces clock_gettime and allocates in it, as libfaketime does.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int own_clock_calls;

int clock_gettime(clockid_t which, struct timespec *t) {
    static void *volatile kept;
    __atomic_fetch_add(&own_clock_calls, 1, __ATOMIC_RELAXED);
    for (size_t size = 16; size <= (size_t)1 << 20; size *= 4) {
        kept = malloc(size);
        free(kept);
    }
    return (int)syscall(SYS_clock_gettime, which, t);
}
