// A thread ends while a fork is in progress, in the prepare handler of a library that runs after ours. In the child its
// heap serves a new thread, and only one.
#define _GNU_SOURCE
#include "c_check.h"
#include "fork_handlers.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { forks = 20, threads = 3, blocks = 300, rounds = 20 };

static void use_malloc(void) {
    void* p[blocks];
    for (int i = 0; i < blocks; ++i) CHECK((p[i] = malloc((size_t)(16 + i % 40 * 16))) != NULL);
    for (int i = 0; i < blocks; ++i) free(p[i]);
}

static sem_t has_heap, may_end;
static pthread_t ending;
static void* end_when_told(void* unused) {
    use_malloc();
    sem_post(&has_heap);
    while (sem_wait(&may_end) != 0) {}
    return unused;
}
static int forking;
static void end_a_thread(void) {
    if (!forking) return;
    forking = 0;
    sem_post(&may_end);
    CHECK(pthread_join(ending, NULL) == 0);
}

// All have a heap before the first works, and work at the same time: what two of them have is overwritten.
static pthread_barrier_t all;
static void* work(void* number) {
    static __thread uintptr_t* p[blocks];
    free(malloc(48));
    for (int round = 0; round < rounds; ++round) {
        pthread_barrier_wait(&all);
        for (int i = 0; i < blocks; ++i) {
            CHECK((p[i] = malloc(48)) != NULL);
            p[i][0] = p[i][1] = (uintptr_t)number * blocks + (uintptr_t)i;
        }
        pthread_barrier_wait(&all);
        for (int i = 0; i < blocks; ++i) {
            CHECK(p[i][0] == (uintptr_t)number * blocks + (uintptr_t)i && p[i][1] == p[i][0]);
            free(p[i]);
        }
    }
    return number;
}

static void work_in_child(void) {
    pthread_t thread[threads];
    pthread_barrier_init(&all, NULL, threads);
    for (uintptr_t i = 0; i < threads; ++i) CHECK(pthread_create(&thread[i], NULL, work, (void*)(i + 1)) == 0);
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
}

int main(void) {
    sem_init(&has_heap, 0, 0);
    sem_init(&may_end, 0, 0);
    call_alone(end_a_thread);
    for (int i = 0; i < forks; ++i) {
        use_malloc();
        CHECK(pthread_create(&ending, NULL, end_when_told, NULL) == 0);
        while (sem_wait(&has_heap) != 0) {}
        forking = 1;
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            work_in_child();
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    puts("every child was whole");
    return 0;
}
