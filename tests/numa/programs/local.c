/* Whatever call a block comes from and however large it is: it lies on the node of the thread that
 * asked. One thread for each CPU, placed by the allocator; or with "pinned" by this program.
 *   local free|used|pinned ROUNDS     from the second round on memory is used again
 * used: each thread has used memory before, so that NUMALLOC_BINDING=auto has bound it. */
#include "check.h"

#include <malloc.h>

static const size_t sizes[] = {1,     16,    48,    100,   256,    1000,   2048,   4096,    5000,   8192,
                               16384, 30000, 32768, 65536, 100000, 524287, 524288, 1048576, 2097152};
enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = 6 };
static const char *const kinds[KINDS] = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"};
static bool pinned, used;
static unsigned long rounds;
static pthread_barrier_t barrier;
static int thread_on[SHOWN_NODES];

static void *get(int kind, size_t size) {
    void *block = NULL;
    switch (kind) {
        case 0: return malloc(size);
        case 1: return calloc(1, size);
        case 2: return realloc(realloc(malloc(1), size / 2 + 1), size);
        case 3: return posix_memalign(&block, 4096, size) == 0 ? block : NULL;
        case 4: return aligned_alloc(64, (size + 63) & ~(size_t)63);
        default: return memalign(65536, size);
    }
}

static void *work(void *argument) {
    int number = (int)(intptr_t)argument;
    if (pinned) pin_to_cpu(number);
    for (int kind = 0; used && kind < KINDS; kind++)
        for (int i = 0; i < SIZES; i++) free(get(kind, sizes[i]));
    int node = current_node();
    __atomic_fetch_add(&thread_on[node % SHOWN_NODES], 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    for (unsigned long round = 0; round < rounds; round++) {
        char *blocks[KINDS][SIZES];
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < SIZES; i++) {
                char *block = blocks[kind][i] = get(kind, sizes[i]);
                expect(block, "%s of %zu bytes failed", kinds[kind], sizes[i]);
                if (!block) continue;
                memset(block, 1, sizes[i]);
                uint64_t elsewhere = pages_elsewhere(block, sizes[i], node, NULL);
                expect(elsewhere == 0, "%s of %zu bytes by thread %d on node %d: %llu pages elsewhere", kinds[kind],
                       sizes[i], number, node, (unsigned long long)elsewhere);
            }
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < SIZES; i++) free(blocks[kind][i]);
        expect(current_node() == node, "thread %d went from node %d to %d", number, node, current_node());
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) die("usage: local free|used|pinned ROUNDS");
    pinned = !strcmp(words[1], "pinned");
    used = !strcmp(words[1], "used");
    rounds = number(words[2], "ROUNDS");
    int threads = cpu_count();
    pthread_t thread[threads];
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 1; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    work(NULL);
    for (int t = 1; t < threads; t++) pthread_join(thread[t], NULL);
    uint64_t with_cpus = read_set("/sys/devices/system/node/has_cpu");
    for (int node = 0; node < SHOWN_NODES; node++)
        if (with_cpus >> node & 1) expect(thread_on[node] > 0, "no thread ran on node %d", node);
    return verdict();
}
