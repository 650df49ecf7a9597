/* Where the threads of any program and its memory are: prints one line of JSON.
 *   spread THREADS MEGABYTES
 * Each thread writes so much that malloc gave it; main also writes a mapping of its own. */
#include "pages.h"

enum { MOST = 256, BLOCK = 64 << 10, MAPPED = 4 << 20 };
struct seen {
    uint64_t nodes; /* the thread ran on these */
    uint64_t heap[SHOWN_NODES];
    char cpus[256];
};
static struct seen *seen;
static size_t bytes;
static pthread_barrier_t barrier;

static void count(const char *block, size_t size, uint64_t *on) {
    for (const char *at = block; at < block + size; at += PAGE) {
        int node = node_of(at);
        if (node >= 0 && node < SHOWN_NODES) on[node]++;
    }
}

static void *work(void *argument) {
    struct seen *mine = &seen[(intptr_t)argument];
    char line[512];
    pthread_barrier_wait(&barrier); /* all threads are alive at once */
    for (size_t done = 0; done < bytes; done += BLOCK) {
        char *block = malloc(BLOCK);
        if (!block) die("malloc");
        memset(block, 1, BLOCK);
        mine->nodes |= UINT64_C(1) << current_node();
        count(block, BLOCK, mine->heap);
        usleep(100);
    }
    FILE *file = fopen("/proc/thread-self/status", "r");
    if (!file) die("cannot read my status");
    while (fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %255s", mine->cpus);
    fclose(file);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int words_count, char **words) {
    if (words_count != 3) die("usage: spread THREADS MEGABYTES");
    int threads = (int)number(words[1], "THREADS"), mode = -1;
    if (threads < 1 || threads > MOST) die("THREADS: 1 to %d", MOST);
    bytes = number(words[2], "MEGABYTES") << 20;
    pthread_t thread[threads];
    seen = map((size_t)threads * sizeof *seen);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 1; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    work(NULL);
    for (int t = 1; t < threads; t++) pthread_join(thread[t], NULL);

    uint64_t mapped[SHOWN_NODES] = {0};
    char *own = map(MAPPED);
    memset(own, 1, MAPPED);
    count(own, MAPPED, mapped);
    syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0);
    printf("{\"policy\":%d,", mode);
    print_spread("mapped", mapped);
    printf(",\"threads\":[");
    for (int t = 0; t < threads; t++) {
        const char *comma = "";
        printf("%s{\"nodes\":[", t ? "," : "");
        for (int node = 0; node < SHOWN_NODES; node++)
            if (seen[t].nodes >> node & 1) {
                printf("%s%d", comma, node);
                comma = ",";
            }
        printf("],\"cpus\":\"%s\",", seen[t].cpus);
        print_spread("heap", seen[t].heap);
        printf("}");
    }
    printf("]}\n");
    return 0;
}
