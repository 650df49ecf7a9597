/* What all proof programs share: where a page is, where a thread is, who is whose partner.
 * Nothing here calls malloc, so that only the program's own allocations are measured. */
#ifndef NUMALLOC_TESTS_PAGES_H
#define NUMALLOC_TESTS_PAGES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
enum { MAX_NODES = 1024, SHOWN_NODES = 64 };

/* A page that a thread has written, and the node it was on while writing. */
struct written {
    uintptr_t page;
    int node;
};

struct tally {
    uint64_t pages;
    uint64_t remote;
    uint64_t unknown; /* pages whose place the kernel would not tell */
    uint64_t on[SHOWN_NODES];
};

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static inline int current_node(void) {
    unsigned cpu, node;
    if (getcpu(&cpu, &node) != 0) die("getcpu: %s", strerror(errno));
    return (int)node;
}

static inline int current_cpu(void) {
    unsigned cpu, node;
    if (getcpu(&cpu, &node) != 0) die("getcpu: %s", strerror(errno));
    return (int)cpu;
}

static inline void pin_to_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("cannot run on CPU %d: %s", cpu, strerror(errno));
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap of %zu bytes: %s", bytes, strerror(errno));
    return memory;
}

/* The nodes of `count` pages; a negative number where the kernel does not tell. */
static inline void nodes_of(void **pages, int *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) nodes[i] = -ENOENT;
    if (syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) < 0) die("move_pages: %s", strerror(errno));
}

/* The same for pages that have been written, which therefore are somewhere. The kernel hides a page for
 * a moment while it makes a huge page of it or moves it, and under AutoNUMA until it is next touched. */
static inline void nodes_of_written(void **pages, int *nodes, size_t count) {
    enum { TRIES = 400 };
    nodes_of(pages, nodes, count);
    for (int attempt = 0, unknown = 1; unknown && attempt < TRIES; attempt++) {
        unknown = 0;
        for (size_t i = 0; i < count; i++) {
            if (nodes[i] >= 0) continue;
            if ((nodes[i] = node_by_frame(pages[i])) < 0) nodes_of(&pages[i], &nodes[i], 1);
            unknown |= nodes[i] < 0;
        }
        if (unknown) usleep(5000);
    }
}

static inline int node_of(const void *address) {
    void *page = (void *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1));
    int node;
    nodes_of(&page, &node, 1);
    return node;
}

/* Notes the pages of a block just written. Returns the number of entries used. */
static inline size_t note_pages(struct written *list, size_t used, const void *block, size_t size, int node) {
    uintptr_t first = (uintptr_t)block & ~(uintptr_t)(PAGE - 1);
    for (uintptr_t page = first; page < (uintptr_t)block + size; page += PAGE)
        list[used++] = (struct written){page, node};
    return used;
}

/* In place: the C library's qsort would allocate. */
static inline void sort_by_page(struct written *list, size_t count) {
    size_t gap = 1;
    while (gap < count / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (size_t i = gap; i < count; i++) {
            struct written item = list[i];
            size_t j = i;
            for (; j >= gap && list[j - gap].page > item.page; j -= gap) list[j] = list[j - gap];
            list[j] = item;
        }
}

/* Asks for the place of each page once, and counts those that are not on the writer's node. */
static inline void count_pages(struct tally *tally, struct written *list, size_t count) {
    enum { CHUNK = 1024 };
    void *pages[CHUNK];
    int nodes[CHUNK], writers[CHUNK];
    size_t filled = 0;
    sort_by_page(list, count);
    for (size_t i = 0; i <= count; i++) {
        if (filled == CHUNK || (i == count && filled > 0)) {
            nodes_of_written(pages, nodes, filled);
            for (size_t k = 0; k < filled; k++) {
                tally->pages++;
                if (nodes[k] < 0) {
                    tally->unknown++;
                } else {
                    tally->remote += nodes[k] != writers[k];
                    if (nodes[k] < SHOWN_NODES) tally->on[nodes[k]]++;
                }
            }
            filled = 0;
        }
        if (i == count || (i > 0 && list[i].page == list[i - 1].page)) continue;
        pages[filled] = (void *)list[i].page;
        writers[filled++] = list[i].node;
    }
}

static inline void add_tally(struct tally *sum, const struct tally *part) {
    sum->pages += part->pages;
    sum->remote += part->remote;
    sum->unknown += part->unknown;
    for (int node = 0; node < SHOWN_NODES; node++) sum->on[node] += part->on[node];
}

/* partner[t] becomes the thread whose memory t is to free: always one on another node, as long
 * as no node has more than half of the threads. Threads in order of their nodes, then turned by
 * the size of the largest group. Returns how many threads got a partner on another node. */
static inline int pair_across_nodes(const int *node, int *partner, int threads) {
    int order[threads], group[SHOWN_NODES] = {0}, used = 0, largest = 0, apart = 0;
    for (int t = 0; t < threads; t++) {
        int g = node[t] % SHOWN_NODES;
        if (++group[g] > largest) largest = group[g];
    }
    for (int g = 0; g < SHOWN_NODES; g++)
        for (int t = 0; t < threads; t++)
            if (node[t] % SHOWN_NODES == g) order[used++] = t;
    for (int i = 0; i < threads; i++) {
        partner[order[i]] = order[(i + largest) % threads];
        apart += node[order[i]] != node[partner[order[i]]];
    }
    return apart;
}

/* "key":[...] up to the highest node with a page. */
static inline void print_spread(const char *key, const uint64_t *on) {
    int last = SHOWN_NODES - 1;
    while (last > 0 && on[last] == 0) last--;
    printf("\"%s\":[", key);
    for (int node = 0; node <= last; node++) printf("%s%llu", node ? "," : "", (unsigned long long)on[node]);
    printf("]");
}

static inline unsigned long number(const char *text, const char *what) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0') die("%s: '%s' is not a number", what, text);
    return value;
}

#endif
