/* The heap's own bookkeeping lies on the node it is for, like the heap itself. Every mapping that has
 * a policy for one node, after all nodes have been in use, has no page on any other node; and there
 * are such mappings for every node that has CPUs and memory. Huge pages: how much of the heap is in
 * them is printed, and with "huge" there has to be some on every node.
 *   regions [huge] */
#include "check.h"

#include <sys/wait.h>

static pthread_barrier_t barrier;

static void *work(void *argument) {
    enum { SMALL = 20000, LARGE = 16 };
    (void)argument;
    char **small = map(SMALL * sizeof(char *)), *large[LARGE];
    for (int i = 0; i < SMALL; i++)
        memset(small[i] = malloc(16 + (size_t)(i % 60) * 16), 1, 16 + (size_t)(i % 60) * 16);
    for (int i = 0; i < LARGE; i++) memset(large[i] = malloc(1 << 20), 1, 1 << 20);
    int compared = 0;
    for (int i = 0; i < LARGE; i++) {
        int told = node_of(large[i]), found = node_by_frame(large[i]);
        if (told < 0 || found < 0) continue;
        expect(found == told, "by its frame a page is on node %d, move_pages says %d", found, told);
        compared++;
    }
    expect(compared > LARGE / 2, "only %d pages have a frame that may be seen", compared);
    pthread_barrier_wait(&barrier); /* all is in use */
    pthread_barrier_wait(&barrier); /* all has been looked at */
    for (int i = 0; i < SMALL; i++) free(small[i]);
    for (int i = 0; i < LARGE; i++) free(large[i]);
    return NULL;
}

/* One mapping a line: ADDRESS POLICY ... N0=12 N1=3 ... kernelpagesize_kB=4 */
static void look_at_maps(uint64_t *pages) {
    char line[4096];
    FILE *file = fopen("/proc/self/numa_maps", "r");
    if (!file) die("cannot read numa_maps");
    while (fgets(line, sizeof line, file)) {
        char *policy = strchr(line, ' ');
        if (!policy) continue;
        policy++;
        char *nodes = strchr(policy, ':');
        if (strncmp(policy, "bind:", 5) && strncmp(policy, "prefer", 6)) continue;
        char *words = strchr(nodes ? nodes : policy, ' ');
        if (!nodes || !words) continue;
        while (nodes[1] == ' ') nodes++;
        *words = '\0';
        uint64_t set = parse_set(nodes + 1);
        if (__builtin_popcountll(set) != 1) continue;
        int home = __builtin_ctzll(set);
        for (char *word = strtok(words + 1, " \n"); word; word = strtok(NULL, " \n")) {
            int node;
            unsigned long count;
            if (sscanf(word, "N%d=%lu", &node, &count) != 2) continue;
            expect(node == home, "mapping %s is for node %d and has %lu pages on node %d", line, home, count, node);
            if (node == home) pages[home] += count;
        }
    }
    fclose(file);
}

static void look_for_huge_pages(uint64_t *kilobytes) {
    char line[512];
    unsigned long start = 0, end = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file) die("cannot read smaps");
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to, huge;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            start = from;
            end = to;
        } else if (sscanf(line, "AnonHugePages: %lu kB", &huge) == 1 && huge > 0) {
            int page_node = -1;
            for (unsigned long at = start; at < end && page_node < 0; at += 2 << 20) page_node = node_of((void *)at);
            if (page_node >= 0 && page_node < SHOWN_NODES) kilobytes[page_node] += huge;
        }
    }
    fclose(file);
}

int main(int count, char **words) {
    (void)words;
    int threads = cpu_count();
    pthread_t thread[threads];
    uint64_t pages[SHOWN_NODES] = {0}, huge[SHOWN_NODES] = {0};
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int t = 0; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, NULL) != 0) die("cannot start thread %d", t);
    pthread_barrier_wait(&barrier);
    look_at_maps(pages);
    look_for_huge_pages(huge);
    pthread_barrier_wait(&barrier);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    uint64_t nodes = read_set("/sys/devices/system/node/has_cpu") & read_set("/sys/devices/system/node/has_memory");
    for (int node = 0; node < SHOWN_NODES; node++) {
        if (!(nodes >> node & 1)) continue;
        expect(pages[node] > 0, "no mapping is bound to node %d", node);
        printf("node %d: %llu bound pages, %llu kB in huge pages\n", node, (unsigned long long)pages[node],
               (unsigned long long)huge[node]);
        if (count > 1) expect(huge[node] > 0, "no huge page on node %d", node);
    }
    return verdict();
}
