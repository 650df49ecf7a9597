/* What numascope has to count exactly: scoped walk BYTES NODE|interleave PASSES | stride BYTES always|never PASSES |
   list BYTES PASSES | pingpong ROUNDS | words ROUNDS OFFSET | atomics ROUNDS | objects ROUNDS | returned
   OBJECTS | faults PAGES | child STEPS. The window is between the markers. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scope_markers.h"

enum { LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20 };

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) abort();
    sched_yield();
}

static char* mapped(size_t bytes, int mode, unsigned long nodes, int advice) {
    char* const all = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) abort();
    char* const memory = (char*)(((uintptr_t)all + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);
    if (mode && syscall(SYS_mbind, memory, bytes, mode, &nodes, 64, 0)) abort();
    if (advice && madvise(memory, bytes, advice)) abort();
    memset(memory, 1, bytes);
    return memory;
}

static unsigned long walked(const char* memory, size_t bytes, size_t step, int passes) {
    unsigned long sum = 0;
    for (int pass = 0; pass < passes; ++pass)
        for (size_t at = 0; at < bytes; at += step) sum += *(volatile const char*)(memory + at);
    return sum;
}

/* Through lines in a random order, so that each is a place of its own. */
static unsigned long followed(char* memory, size_t bytes, int passes) {
    const size_t lines = bytes / LINE;
    size_t* const order = malloc(lines * sizeof *order);
    for (size_t i = 0; i < lines; ++i) order[i] = i;
    srand(1);
    for (size_t i = lines - 1; i > 0; --i) {
        const size_t other = (size_t)rand() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < lines; ++i) *(void**)(memory + order[i] * LINE) = memory + order[(i + 1) % lines] * LINE;
    SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
    void* volatile* at = (void* volatile*)memory;
    for (size_t step = 0; step < lines * (size_t)passes; ++step) at = *at;
    SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
    return (unsigned long)at;
}

static struct {
    _Alignas(LINE) volatile long turn;
    _Alignas(LINE) volatile int lines[LINE / sizeof(int)];
    long rounds;
    pthread_barrier_t ready;
} shared;

static volatile int* words[2];

static void* play(void* cpu) {
    run_on((int)(intptr_t)cpu);
    const long mine = (intptr_t)cpu != 0;
    pthread_barrier_wait(&shared.ready);
    for (long round = 0; round < shared.rounds; ++round) {
        while ((shared.turn & 1) != mine) __builtin_ia32_pause();
        shared.turn = shared.turn + 1;
    }
    return NULL;
}

static void* scribble(void* cpu) {
    run_on((int)(intptr_t)cpu);
    const long mine = (intptr_t)cpu != 0;
    volatile int* const word = words[mine];
    pthread_barrier_wait(&shared.ready);
    for (long round = 0; round < shared.rounds; ++round) {
        while ((shared.turn & 1) != mine) __builtin_ia32_pause();
        *word = *word + 1;
        shared.turn = shared.turn + 1;
    }
    return NULL;
}

static void* add(void* cpu) {
    run_on((int)(intptr_t)cpu);
    const long mine = (intptr_t)cpu != 0;
    pthread_barrier_wait(&shared.ready);
    for (long round = 0; round < shared.rounds; ++round) {
        while ((shared.turn & 1) != mine) __builtin_ia32_pause();
        __atomic_fetch_add(&shared.lines[0], 1, __ATOMIC_RELAXED);
        __atomic_exchange_n(&shared.lines[1], 1, __ATOMIC_RELAXED);
        shared.turn = shared.turn + 1;
    }
    return NULL;
}

/* Two objects of one line: 20 bytes of calloc's and 21 that realloc made of 4, each in a chunk of 32. */
static void objects_of_a_line(volatile int* found[2]) {
    for (;;) {
        char* const first = calloc(5, 4);
        char* const second = realloc(malloc(4), 21);
        if (!first || !second) abort();
        found[0] = (volatile int*)first;
        found[1] = (volatile int*)second + 2;
        if ((uintptr_t)first / LINE == (uintptr_t)(second + 8) / LINE) return;
        if (!malloc(4)) abort();
    }
}

static void together(void* (*what)(void*), int cpus) {
    pthread_t threads[2];
    pthread_barrier_init(&shared.ready, NULL, 3);
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, what, (void*)(intptr_t)(i * (cpus - 1)));
    SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
    pthread_barrier_wait(&shared.ready);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
}

int main(int count, char** arguments) {
    if (count < 3) return 2;
    const char* const what = arguments[1];
    const long number = atol(arguments[2]);
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    unsigned long sum = 0;
    if (!strcmp(what, "walk") || !strcmp(what, "stride")) {
        const int walk = !strcmp(what, "walk"), passes = atoi(arguments[4]);
        run_on(0);
        const int interleave = walk && !strcmp(arguments[3], "interleave");
        const int advice = walk ? MADV_NOHUGEPAGE : !strcmp(arguments[3], "always") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
        const unsigned long nodes = !walk        ? 1
                                    : interleave ? (1ul << atoi(arguments[5])) - 1
                                                 : 1ul << atoi(arguments[3]);
        char* const memory = mapped((size_t)number, interleave ? MPOL_INTERLEAVE : MPOL_BIND, nodes, advice);
        SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
        sum = walked(memory, (size_t)number, walk ? LINE : PAGE, passes);
        SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
    } else if (!strcmp(what, "list")) {
        run_on(0);
        sum = followed(mapped((size_t)number, 0, 0, MADV_HUGEPAGE), (size_t)number, atoi(arguments[3]));
    } else if (!strcmp(what, "pingpong")) {
        shared.rounds = number;
        together(play, cpus);
    } else if (!strcmp(what, "words")) {
        shared.rounds = number;
        words[0] = &shared.lines[0];
        words[1] = &shared.lines[atoi(arguments[3])];
        together(scribble, cpus);
    } else if (!strcmp(what, "objects")) {
        shared.rounds = number;
        objects_of_a_line(words);
        together(scribble, cpus);
    } else if (!strcmp(what,
                       "returned")) { /* objects of which nothing is in a cache, nor what the allocator knows of them */
        run_on(0);
        char** const objects = malloc((size_t)number * sizeof *objects);
        for (long i = 0; i < number; ++i) objects[i] = aligned_alloc(LINE, LINE);
        SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
        for (long i = 0; i < number; ++i) free(objects[i]);
        SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
    } else if (!strcmp(what, "faults")) { /* the first access to each of so many pages */
        run_on(0);
        const size_t bytes = (size_t)number * PAGE;
        char* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE)) abort();
        SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
        for (size_t at = 0; at < bytes; at += PAGE) *(volatile char*)(memory + at) = 1;
        SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
    } else if (!strcmp(what, "atomics")) {
        shared.rounds = number;
        together(add, cpus);
    } else if (!strcmp(what,
                       "child")) { /* it works where its parent's code is, and so does the parent after the window */
        SCOPE_MARK(SCOPE_MARK_START, 0ul, 0ul);
        const pid_t child = fork();
        if (child == 0) {
            for (volatile long step = 0; step < number; ++step) {}
            _exit(0);
        }
        waitpid(child, NULL, 0);
        SCOPE_MARK(SCOPE_MARK_STOP, 0ul, 0ul);
        for (volatile long step = 0; step < number; ++step) {}
    } else {
        return 2;
    }
    printf("%lu\n", sum);
    return 0;
}
