// A thread frees an object of a program's own heap while a fork is in progress, in the prepare handler of a library
// that runs after ours. Such a free is carried out later. Whoever looks at the heap after it, or destroys it, must find
// it done.
#define _GNU_SOURCE
#include "c_check.h"
#include "fork_handlers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
static char* freed_after;  // carried out before the object: the last recorded is the first
enum { large = 3 << 20 };
static void* free_it(void* unused) {
    free(object);
    free(freed_after);
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

// One thread carries recorded frees out and is held in the first of them, in madvise(), until main() has looked at the
// heap: main() must neither wait for it nor miss the free behind it.
static atomic_int forked, held_up, looked;
static __thread int carries_out;

int madvise(void* p, size_t n, int advice) {
    if (carries_out && !held_up && (char*)p + n > freed_after && (char*)p < freed_after + large) {
        held_up = 1;
        while (!looked) sched_yield();
    }
    return (int)syscall(SYS_madvise, p, n, advice);
}
static void* carry_out(void* unused) {
    while (!forked) sched_yield();
    carries_out = 1;
    while (!held_up) use_malloc();
    return unused;
}

// `other`: the heap of the object whose free is carried out first; NULL for malloc's.
static void look_while_another_carries_out(numalloc_heap* other) {
    forked = held_up = looked = 0;
    numalloc_heap* const heap = numalloc_heap_create(0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, carry_out, NULL) == 0);
    CHECK((object = numalloc_heap_malloc(heap, 16)) != NULL);
    CHECK((freed_after = other == NULL ? malloc(large) : numalloc_heap_malloc(other, large)) != NULL);
    memset(freed_after, 1, large);
    fork_and_wait();
    forked = 1;
    while (!held_up) sched_yield();
    CHECK(numalloc_heap_used(heap) == 0);
    if (other != NULL) CHECK(numalloc_heap_used(other) == 0);
    looked = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    numalloc_heap_destroy(heap);
    freed_after = NULL;
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
    look_while_another_carries_out(NULL);
    numalloc_heap* const other = numalloc_heap_create(0);
    look_while_another_carries_out(other);
    numalloc_heap_destroy(other);
    puts("every object was freed once");
    return 0;
}
