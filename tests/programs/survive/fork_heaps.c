// A thread frees an object of a program's own heap while a fork is in progress, in the prepare handler of a library that runs after
// ours. Such a free is carried out later. Whoever looks at the heap after it, or destroys it, must find it done.
#define _GNU_SOURCE
#include "c_check.h"
#include "fork_handlers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "numalloc/numalloc.h"

#pragma weak numalloc_heap_create
#pragma weak numalloc_heap_destroy
#pragma weak numalloc_heap_reset
#pragma weak numalloc_heap_malloc
#pragma weak numalloc_heap_used
#pragma weak numalloc_heap_held

enum { forks = 4 };

static void* object;
static void* free_it(void* unused) {
    free(object);
    return unused;
}
static int forking;
static void free_in_a_thread(void) {
    if (!forking) return;
    forking = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_it, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

// An invalid free ends the program here, if not before.
static void use_malloc(void) {
    for (size_t size = 16; size < 2 << 20; size += size / 2) free(malloc(size));
}

static void fork_and_wait(void) {
    forking = 1;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(0);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    if (numalloc_heap_create == NULL) return 2;
    call_alone(free_in_a_thread);
    static const size_t sizes[] = {16, 40000, 3 << 20};
    for (int i = 0; i < forks; ++i) {
        for (int k = 0; k < 3; ++k) {
            numalloc_heap* const heap = numalloc_heap_create(0);
            CHECK(heap != NULL);
            CHECK((object = numalloc_heap_malloc(heap, sizes[k])) != NULL);
            fork_and_wait();
            if (i == 0) CHECK(numalloc_heap_used(heap) == 0);
            if (i == 1) CHECK(numalloc_heap_held(heap) <= 1 << 20);
            if (i == 2) numalloc_heap_reset(heap);
            if (i == 2) use_malloc();
            numalloc_heap_destroy(heap);
            use_malloc();
        }
    }
    puts("every object was freed once");
    return 0;
}
