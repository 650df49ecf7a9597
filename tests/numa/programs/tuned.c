/* Programs for which one placement is right, as the kernel tells where pages are: time says nothing in an
 * emulator. Each prints a score of which more is better, with some noise.
 *   tuned shared COUNTER   one thread writes what all read: the score is how many nodes serve it alike
 *   tuned own COUNTER      each thread uses its own: the score is the part of pages on the node of their writer
 *   tuned same COUNTER     placement does not matter
 * COUNTER is a file that counts the runs. The noise is drawn by that number, so that it does not depend on how
 * the program was started, and a test sees the same each time. */
#include "check.h"

enum { BLOCK = 64 << 10, BLOCKS = 64, SHARED_BLOCKS = 128 };

static uint64_t local_pages, all_pages;

/* A number about 0 whose standard deviation is 1: twelve even ones. */
static double drawn(uint64_t run) {
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t x = (run * 12 + i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        sum += (double)((x ^ (x >> 31)) >> 11) / (double)(UINT64_C(1) << 53);
    }
    return sum;
}

static uint64_t next_run(const char *path) {
    unsigned long run = 0;
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%lu", &run) != 1) die("%s has no number", path);
        fclose(file);
    }
    file = fopen(path, "w");
    if (!file) die("cannot write %s", path);
    fprintf(file, "%lu", run + 1);
    fclose(file);
    return run;
}

static double shared(void) {
    uint64_t on[SHOWN_NODES] = {0}, all = 0, most = 0;
    static char *blocks[SHARED_BLOCKS];
    for (int b = 0; b < SHARED_BLOCKS; b++) {
        blocks[b] = malloc(BLOCK);
        memset(blocks[b], 1, BLOCK);
        pages_elsewhere(blocks[b], BLOCK, 0, on);
    }
    for (int n = 0; n < SHOWN_NODES; n++) {
        all += on[n];
        most = on[n] > most ? on[n] : most;
    }
    return (double)all / (double)most;
}

static void *use_own(void *unused) {
    (void)unused;
    static __thread char *blocks[BLOCKS];
    uint64_t local = 0, all = 0;
    for (int b = 0; b < BLOCKS; b++) {
        blocks[b] = malloc(BLOCK);
        const int before = current_node();
        memset(blocks[b], 1, BLOCK);
        if (current_node() != before) continue; /* it was moved in the middle of the block */
        uint64_t on[SHOWN_NODES] = {0};
        pages_elsewhere(blocks[b], BLOCK, before, on);
        local += on[before];
        for (int n = 0; n < SHOWN_NODES; n++) all += on[n];
    }
    __atomic_fetch_add(&all_pages, all, __ATOMIC_RELAXED);
    __atomic_fetch_add(&local_pages, local, __ATOMIC_RELAXED);
    return NULL;
}

static double own(void) {
    pthread_t threads[64];
    const int count = cpu_count() < 64 ? cpu_count() : 64;
    for (int t = 0; t < count; t++)
        if (pthread_create(&threads[t], NULL, use_own, NULL)) die("cannot start a thread");
    for (int t = 0; t < count; t++) pthread_join(threads[t], NULL);
    return all_pages ? (double)local_pages / (double)all_pages : 0;
}

int main(int count, char **words) {
    if (count != 3) die("usage: tuned shared|own|same COUNTER");
    double score = strcmp(words[1], "shared") == 0 ? shared() : strcmp(words[1], "own") == 0 ? own() : 1;
    printf("score: %.6f\n", 100 * score * (1 + 0.03 * drawn(next_run(words[2]))));
    return 0;
}
