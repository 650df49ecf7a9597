/* How many pages of some blocks lie on each node, by numalloc_node_of(). */
#ifndef EXAMPLES_PAGES_H
#define EXAMPLES_PAGES_H

#include <numalloc/numalloc.h>
#include <stdint.h>
#include <stdio.h>

enum { PAGE = 4096, MOST_NODES = 1024 };

struct pages {
    long on[MOST_NODES];
};

/* The pages of one block. */
static inline void count_pages(struct pages *pages, const void *block, size_t bytes) {
    uintptr_t first = (uintptr_t)block & ~(uintptr_t)(PAGE - 1);
    for (uintptr_t at = first; at < (uintptr_t)block + bytes; at += PAGE) {
        int node = numalloc_node_of((const void *)(at < (uintptr_t)block ? (uintptr_t)block : at));
        if (node >= 0 && node < MOST_NODES) pages->on[node]++;
    }
}

static inline void print_pages(const char *what, const struct pages *pages) {
    printf("%s:", what);
    for (int node = 0; node < MOST_NODES; node++)
        if (pages->on[node] > 0) printf("  node %d: %ld pages", node, pages->on[node]);
    printf("\n");
}

#endif
