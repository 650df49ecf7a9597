// Handlers of fork that allocate, registered before the first malloc and after it, while other threads allocate: all of
// them work, and so do parent and child.
//
// waiting: a handler also waits for another thread that allocates, as libraries do that bring their threads to rest
// before a fork; no order of ours may keep that thread from it.
#define _GNU_SOURCE
#include "fork_handlers.h"
#include "c_check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { forks = 40, blocks = 200 };

static atomic_bool stop;
static atomic_uint asked, answered;
static pid_t parent;

static void* allocate_meanwhile(void* unused) {
    static void* own[blocks];
    for (unsigned i = 0; !stop; ++i) {
        void** p = &own[i * 2654435761U / 64 % blocks];
        free(*p);
        *p = malloc(i % 20 == 0 ? i * 7919U % 1000000 : i * 31U % 2000);
    }
    for (int i = 0; i < blocks; ++i) free(own[i]);
    return unused;
}

static void* allocate_once(void* unused) {
    free(malloc(70000));
    return unused;
}

static void run_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_once, NULL) == 0);
    pthread_join(thread, NULL);
}

static void* answer(void* unused) {
    while (!stop) {
        if (answered == asked) {
            usleep(50);
            continue;
        }
        free(malloc(900000));
        run_thread();
        ++answered;
    }
    return unused;
}

static void ask(void) {
    // In the child it is alone, but may have threads again.
    if (getpid() != parent) {
        run_thread();
        return;
    }
    const unsigned number = ++asked;
    while (answered != number) usleep(50);
}

// Registered by the program, after its first malloc.
static void allocate_in_handler(void) { free(malloc(500000)); }

int main(int argc, char** argv) {
    const int waiting = argc > 1 && strcmp(argv[1], "waiting") == 0;
    alarm(550);
    parent = getpid();
    free(malloc(10));
    CHECK(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler) == 0);
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, allocate_meanwhile, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, answer, NULL) == 0);
    if (waiting) call_beside(ask);
    for (int i = 0; i < forks; ++i) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(300);
            CHECK(calls_of(2) == 1);
            run_thread();
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(status == 0);
    }
    CHECK(calls_of(0) == forks && calls_of(1) == forks && calls_of(2) == 0);
    stop = 1;
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    puts("all handlers ran");
    return 0;
}
