// Threads that lock a mutex or not, allocate and end, while a preloaded library allocates in pthread_mutex_lock and its
// like (own_mutexes.c).
#define _GNU_SOURCE
#include "c_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { rounds = 300, threads = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void* work(void* number) {
    if ((uintptr_t)number % 2 == 1) {
        CHECK(pthread_mutex_lock(&mutex) == 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    void* volatile p = malloc(100);
    CHECK(p != NULL);
    free(p);
    return number;
}

int main(void) {
    const int* const seen = (const int*)dlsym(RTLD_DEFAULT, "own_mutexes_seen");
    CHECK(seen != NULL);
    for (int round = 0; round < rounds; ++round) {
        pthread_t thread[threads];
        for (uintptr_t i = 0; i < threads; ++i) CHECK(pthread_create(&thread[i], NULL, work, (void*)i) == 0);
        for (int i = 0; i < threads; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    }
    CHECK(*seen >= rounds * threads);
    puts("every thread went on");
    return 0;
}
