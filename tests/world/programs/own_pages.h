/* A thread's work, and where the pages of its blocks lie: here, if on the node where it runs. */
#ifndef NUMALLOC_WORLD_OWN_PAGES_H
#define NUMALLOC_WORLD_OWN_PAGES_H

#include "pages.h"

enum { OWN_BLOCKS = 256, OWN_LARGEST = 3000 };

struct own {
    char *block[OWN_BLOCKS];
    unsigned next;
    unsigned long pages, here;
};

#define say(...) (printf(__VA_ARGS__), fflush(stdout))

/* Replaces 16 of the blocks. */
static inline void allocate_and_compute(struct own *own) {
    for (unsigned n = 0; n < 16; n++) {
        unsigned i = own->next++ % OWN_BLOCKS;
        size_t size = 16 + own->next * 7919u % OWN_LARGEST;
        free(own->block[i]);
        if (!(own->block[i] = malloc(size))) die("no memory");
        memset(own->block[i], 1, size);
    }
    for (volatile int k = 0; k < 20000; k++) continue;
}

/* Counts the pages in which the thread's blocks begin, adds them to `total` and frees the blocks. */
static inline void add_own_pages(struct own *own, struct own *total) {
    void *pages[OWN_BLOCKS];
    int nodes[OWN_BLOCKS];
    size_t count = 0;
    for (unsigned i = 0; i < OWN_BLOCKS; i++)
        if (own->block[i]) pages[count++] = (void *)((uintptr_t)own->block[i] & ~(uintptr_t)(PAGE - 1));
    nodes_of_written(pages, nodes, count);
    int here = current_node();
    for (size_t i = 0; i < count; i++) __atomic_fetch_add(&total->here, nodes[i] == here, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->pages, count, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < OWN_BLOCKS; i++) {
        free(own->block[i]);
        own->block[i] = NULL;
    }
}

static inline void print_own_pages(const char *name, const struct own *total) {
    if (total->pages == 0) die("no thread had pages");
    say("%s: %.2f %% of own pages here\n", name, 100.0 * (double)total->here / (double)total->pages);
}

#endif
