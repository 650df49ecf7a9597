// A library with a libc of its own (dlmopen, LD_AUDIT) numbers its keys of threads' data from the beginning. Its first
// key must not read what the allocator has stored for a thread, in main and in threads.
#define _GNU_SOURCE
#include "c_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 100 };

static int (*use_a_key)(void);

static void* work(void* unused) {
    void* p[64];
    for (int i = 0; i < 64; ++i) CHECK((p[i] = malloc(1000)) != NULL);
    memset(p[0], 1, 1000);
    CHECK(use_a_key());
    for (int i = 0; i < 64; ++i) free(p[i]);
    return unused;
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    free(malloc(10));
    void* const library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    CHECK(library != NULL);
    *(void**)&use_a_key = dlsym(library, "use_a_key");
    CHECK(use_a_key != NULL && use_a_key());
    for (int i = 0; i < threads; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    puts("every key was its own");
    return 0;
}
