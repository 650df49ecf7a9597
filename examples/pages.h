/* How many pages of some blocks lie on each node, by numalloc_pages_of_range(). */
#ifndef EXAMPLES_PAGES_H
#define EXAMPLES_PAGES_H

#include <numalloc/numalloc.h>
#include <stdint.h>
#include <stdio.h>

enum { PAGE = 4096, MOST_NODES = 1024 };

struct pages {
    size_t on[MOST_NODES];
};

/* The pages of one block. Where the kernel does not tell (a container with several nodes), none. */
static inline void count_pages(struct pages *pages, const void *block, size_t bytes) {
    (void)numalloc_pages_of_range(block, bytes, pages->on, MOST_NODES);
}

static inline void print_pages(const char *what, const struct pages *pages) {
    printf("%s:", what);
    for (int node = 0; node < MOST_NODES; node++)
        if (pages->on[node] > 0) printf("  node %d: %zu pages", node, pages->on[node]);
    printf("\n");
}

#endif
