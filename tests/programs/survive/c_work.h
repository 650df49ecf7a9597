// What the tests in C run under filters and beside hooks: allocates, grows, clears and frees blocks of all sizes in
// several threads, so that the heap removes pages, moves them and breaks huge pages up.
#pragma once

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "c_check.h"

enum { blocks = 300, threads = 3 };
static int rounds = 30;

static unsigned draw(unsigned* seed) { return (*seed = *seed * 1103515245U + 12345U) >> 8; }

static size_t draw_size(unsigned* seed) {
    const unsigned die = draw(seed) % 100;
    return die < 60   ? draw(seed) % 2000 + 1
           : die < 90 ? draw(seed) % 100000 + 1
           : die < 99 ? draw(seed) % 3000000 + 1
                      : draw(seed) % 60000000 + 1;
}

static void fill(char* p, size_t n, char with) {
    for (size_t at = 0; at < n; at += 4096) p[at] = with;
    p[n - 1] = with;
}
static void check(const char* p, size_t n, char with) {
    for (size_t at = 0; at < n; at += 4096) CHECK(p[at] == with);
    CHECK(p[n - 1] == with);
}

static void* work(void* number) {
    static __thread struct {
        char* p;
        size_t n;
        char with;
    } block[blocks];
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < blocks; ++i) {
            if (block[i].p != NULL) {
                check(block[i].p, block[i].n, block[i].with);
                if (draw(&seed) % 3 != 0) {
                    errno = 4711;
                    free(block[i].p);
                    CHECK(errno == 4711);
                    block[i].p = NULL;
                } else {
                    const size_t n = block[i].n + block[i].n / 2 + 1;
                    block[i].p = realloc(block[i].p, n);
                    CHECK(block[i].p != NULL && block[i].p[0] == block[i].with);
                    block[i].n = n > 200000000 ? 1 : n;
                    fill(block[i].p, block[i].n, block[i].with);
                }
            } else {
                const size_t n = draw_size(&seed);
                char* p = draw(&seed) % 4 == 0 ? calloc(1, n) : malloc(n);
                CHECK(p != NULL);
                block[i].p = p;
                block[i].n = n;
                block[i].with = (char)(i + round + 1);
                fill(p, n, block[i].with);
            }
        }
        if (round % 7 == 6) malloc_trim(0);
    }
    for (int i = 0; i < blocks; ++i) {
        free(block[i].p);
        block[i].p = NULL;
    }
    return number;
}

// calloc returns zeros from fresh, reused and purged pages.
static void clear_again(void) {
    for (int i = 0; i < 20; ++i) {
        const size_t n = (size_t)(i % 5 + 1) << 22;
        char* p = calloc(1, n);
        CHECK(p != NULL);
        for (size_t at = 0; at < n; at += 512) CHECK(p[at] == 0);
        memset(p, 1, n);
        free(p);
        if (i % 6 == 5) malloc_trim(0);
    }
}

static void work_all(void) {
    pthread_t thread[threads];
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&thread[i], NULL, work, (void*)(uintptr_t)(i + 2)) == 0);
    work((void*)1);
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    clear_again();
    malloc_trim(0);
}
