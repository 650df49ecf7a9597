/* A thread that moves itself allocates on its new node at once, in every size, also when its lists
 * are full of objects of the old node.
 *   moving main|thread self|pthread     who moves, and by which call */
#include "check.h"

static const size_t sizes[] = {16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 3145728};
enum { SIZES = sizeof sizes / sizeof *sizes, EACH = 64, LARGE_EACH = 4, ROUNDS = 3 };
static bool by_pthread;

static void move_to(int cpu) {
    if (!by_pthread) return pin_to_cpu(cpu);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error) die("pthread_setaffinity_np: %s", strerror(error));
}

static void *work(void *argument) {
    (void)argument;
    static char *blocks[SIZES][EACH];
    for (int round = 0; round < ROUNDS; round++)
        for (int node = 0; node < SHOWN_NODES; node++) {
            if (cpu_of_node(node) < 0) continue;
            move_to(cpu_of_node(node));
            expect(current_node() == node, "moved to node %d, but runs on %d", node, current_node());
            for (int s = 0; s < SIZES; s++)
                for (int i = 0; i < (sizes[s] < 65536 ? EACH : LARGE_EACH); i++) {
                    char *block = malloc(sizes[s]);
                    if (!block) die("malloc(%zu) failed", sizes[s]);
                    memset(block, 1, sizes[s]);
                    uint64_t elsewhere = pages_elsewhere(block, sizes[s], node, NULL);
                    expect(elsewhere == 0,
                           "round %d, moved to node %d: %llu pages of block %d of %zu bytes are on node %d", round,
                           node, (unsigned long long)elsewhere, i, sizes[s], node_of(block));
                    /* Half stays in use until the next node, so that memory of elsewhere is freed there. */
                    free(blocks[s][i]);
                    blocks[s][i] = i % 2 ? block : (free(block), NULL);
                }
        }
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) die("usage: moving main|thread self|pthread");
    by_pthread = !strcmp(words[2], "pthread");
    if (!strcmp(words[1], "main")) {
        work(NULL);
    } else {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
    }
    return verdict();
}
