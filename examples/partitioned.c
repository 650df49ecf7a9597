/* Partitioned shared memory. The main thread reads the input and hands each worker its part, which it
 * allocates on the worker's node before the worker even exists: psm_alloc(bytes, owner). Whoever comes
 * last frees what it finds. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "pages.h"

enum { WORKERS = 4, VALUES = 300000 };

struct part {
    int owner; /* threads are numbered in order of their creation; main is 0 */
    double *values;
    double sum;
    int node; /* where the worker ran */
};

static void *work(void *argument) {
    struct part *part = argument;
    part->node = numalloc_current_node();
    for (int i = 0; i < VALUES; i++) part->sum += part->values[i];
    return NULL;
}

int main(void) {
    struct part parts[WORKERS];
    pthread_t threads[WORKERS];
    bool right = true;

    for (int w = 0; w < WORKERS; w++) {
        parts[w] = (struct part){.owner = w + 1};
        parts[w].values = psm_alloc(VALUES * sizeof(double), parts[w].owner);
        if (!parts[w].values) return perror("psm_alloc"), 1;
        for (int i = 0; i < VALUES; i++) parts[w].values[i] = w + 1; /* written by main, and yet not on main's node */
    }
    for (int w = 0; w < WORKERS; w++)
        if (pthread_create(&threads[w], NULL, work, &parts[w]) != 0) return 1;
    for (int w = 0; w < WORKERS; w++) {
        struct pages pages = {{0}};
        char what[64];
        pthread_join(threads[w], NULL);
        count_pages(&pages, parts[w].values, VALUES * sizeof(double));
        snprintf(what, sizeof what, "worker %d ran on node %d; its part", parts[w].owner, parts[w].node);
        print_pages(what, &pages);
        right = right && parts[w].sum == (double)VALUES * (w + 1);
        psm_free(parts[w].values);
    }
    puts(right ? "all sums are right" : "a sum is wrong");
    return !right;
}
