/* Where threads are put: prints one line of JSON, for each thread in order of creation (the first is
 * main) the nodes it was seen on and the CPUs that the kernel allows it.
 *   placement THREADS */
#include "pages.h"

enum { LOOKS = 20, MOST = 1024 };
struct seen {
    uint64_t nodes;
    char cpus[256];
};
static struct seen *seen;
static pthread_barrier_t barrier;

static void *work(void *argument) {
    struct seen *mine = &seen[(intptr_t)argument];
    char line[512];
    for (int look = 0; look < LOOKS; look++) {
        mine->nodes |= UINT64_C(1) << current_node();
        free(malloc(100));
        usleep(1000);
    }
    FILE *file = fopen("/proc/thread-self/status", "r");
    if (!file) die("cannot read my status");
    while (fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %255s", mine->cpus);
    fclose(file);
    pthread_barrier_wait(&barrier); /* all threads are alive at once */
    return NULL;
}

int main(int count, char **words) {
    if (count != 2) die("usage: placement THREADS");
    int threads = (int)number(words[1], "THREADS");
    if (threads < 1 || threads > MOST) die("THREADS: 1 to %d", MOST);
    pthread_t thread[threads];
    seen = map((size_t)threads * sizeof *seen);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 1; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    work(NULL);
    for (int t = 1; t < threads; t++) pthread_join(thread[t], NULL);
    printf("[");
    for (int t = 0; t < threads; t++) {
        const char *comma = "";
        printf("%s{\"nodes\":[", t ? "," : "");
        for (int node = 0; node < SHOWN_NODES; node++)
            if (seen[t].nodes >> node & 1) {
                printf("%s%d", comma, node);
                comma = ",";
            }
        printf("],\"cpus\":\"%s\"}", seen[t].cpus);
    }
    printf("]\n");
    return 0;
}
