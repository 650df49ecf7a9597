// Threads that end while they hold a robust mutex, which is valid, or whose memory the program has unmapped or freed,
// as libc tolerates.
#define _GNU_SOURCE
#include "c_check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { threads = 200 };
static enum { held, unmapped, freed } what;

static void lock(pthread_mutex_t* mutex) {
    pthread_mutexattr_t robust;
    CHECK(pthread_mutexattr_init(&robust) == 0 && pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutex_init(mutex, &robust) == 0 && pthread_mutex_lock(mutex) == 0);
}

static void* work(void* unused) {
    (void)unused;
    free(malloc(100));
    if (what == unmapped) {
        pthread_mutex_t* const mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(mutex != MAP_FAILED);
        lock(mutex);
        munmap(mutex, 4096);
        return NULL;
    }
    pthread_mutex_t* const mutex = malloc(sizeof *mutex);
    CHECK(mutex != NULL);
    lock(mutex);
    if (what == held) return mutex;
    free(mutex);
    void* const reused = malloc(sizeof *mutex);
    CHECK(reused == mutex || getenv("NUMALLOC_TEST_ANY") != NULL);
    return memset(reused, 0x41, sizeof *mutex);
}

int main(int count, char** words) {
    CHECK(count == 2);
    what = strcmp(words[1], "held") == 0 ? held : strcmp(words[1], "unmapped") == 0 ? unmapped : freed;
    for (int t = 0; t < threads; ++t) {
        pthread_t thread;
        void* left;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, &left) == 0);
        if (what == held) {
            CHECK(pthread_mutex_lock(left) == EOWNERDEAD);
            CHECK(pthread_mutex_consistent(left) == 0 && pthread_mutex_unlock(left) == 0);
        } else if (what == freed) {
            for (size_t i = 0; i < sizeof(pthread_mutex_t); ++i) CHECK(((const char*)left)[i] == 0x41);
        }
        free(left);
    }
    puts("every thread ended");
    return 0;
}
