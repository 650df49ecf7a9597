/* What was decided around the program holds inside: by numactl or by a cpuset.
 *   confined CPU_NODES MEMORY_NODES           threads run on the first, memory is on the second only,
 *                                             and on the thread's own node if that is among them
 *   confined CPU_NODES MEMORY_NODES interleaved   pages are spread evenly over MEMORY_NODES */
#include "check.h"

enum { BLOCKS = 32, BLOCK = 1 << 18, SMALL = 4000, SMALL_SIZE = 512 };
static uint64_t cpu_nodes, memory_nodes, on[SHOWN_NODES];
static bool interleaved;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
    int number = (int)(intptr_t)argument;
    uint64_t mine[SHOWN_NODES] = {0}, elsewhere = 0;
    free(malloc(BLOCK)); /* that it allocates binds it */
    int node = current_node();
    expect(cpu_nodes >> node & 1, "thread %d runs on node %d", number, node);
    char *large[BLOCKS], **small = map(SMALL * sizeof(char *));
    for (int i = 0; i < BLOCKS; i++) {
        if (!(large[i] = malloc(BLOCK))) die("malloc failed");
        memset(large[i], 1, BLOCK);
        elsewhere += pages_elsewhere(large[i], BLOCK, node, mine);
    }
    for (int i = 0; i < SMALL; i++) {
        if (!(small[i] = malloc(SMALL_SIZE))) die("malloc failed");
        memset(small[i], 1, SMALL_SIZE);
        elsewhere += pages_elsewhere(small[i], SMALL_SIZE, node, mine);
    }
    expect(cpu_nodes >> current_node() & 1, "thread %d went to node %d", number, current_node());
    if (!interleaved && memory_nodes >> node & 1)
        expect(elsewhere == 0, "thread %d on node %d: %llu pages elsewhere", number, node,
               (unsigned long long)elsewhere);
    pthread_mutex_lock(&lock);
    for (int other = 0; other < SHOWN_NODES; other++) on[other] += mine[other];
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < BLOCKS; i++) free(large[i]);
    for (int i = 0; i < SMALL; i++) free(small[i]);
    return NULL;
}

int main(int count, char **words) {
    if (count < 3) die("usage: confined CPU_NODES MEMORY_NODES [interleaved]");
    cpu_nodes = parse_set(words[1]);
    memory_nodes = parse_set(words[2]);
    interleaved = count > 3;
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    work(NULL);
    for (int t = 1; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    for (int t = 1; t < THREADS; t++) pthread_join(thread[t], NULL);
    uint64_t total = 0;
    for (int node = 0; node < SHOWN_NODES; node++) total += on[node];
    uint64_t fair = total / (uint64_t)__builtin_popcountll(memory_nodes);
    for (int node = 0; node < SHOWN_NODES; node++) {
        if (on[node]) printf("node %d: %llu pages\n", node, (unsigned long long)on[node]);
        if (!(memory_nodes >> node & 1)) {
            expect(on[node] == 0, "%llu pages on node %d, which is not allowed", (unsigned long long)on[node], node);
        } else if (interleaved) {
            expect(on[node] > fair / 2 && on[node] < fair * 3 / 2, "node %d has %llu pages, a fair share is %llu", node,
                   (unsigned long long)on[node], (unsigned long long)fair);
        }
    }
    return verdict();
}
