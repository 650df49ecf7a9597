/* A thread that is moved not by itself, or not through libc, gets its memory on the new node too.
 *   moved raw|other|other-pthread
 * raw: by a system call, as libnuma's numa_run_on_node does it; other: by another thread. */
#include "check.h"

enum { BLOCKS = 20000, SIZE = 1000 };
static pthread_barrier_t barrier;
static pthread_t mover;
static volatile int target;
static int tid, raw;

static void *work(void *unused) {
    (void)unused;
    static char *blocks[BLOCKS];
    tid = (int)syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    for (;;) {
        pthread_barrier_wait(&barrier); /* main has chosen, and moved us unless that is our work */
        if (target < 0) return NULL;
        if (raw) {
            unsigned long mask[16] = {0};
            mask[cpu_of_node(target) / 64] |= 1UL << cpu_of_node(target) % 64;
            if (syscall(SYS_sched_setaffinity, 0, sizeof mask, mask) != 0)
                die("sched_setaffinity: %s", strerror(errno));
        }
        expect(current_node() == target, "moved to node %d, but runs on %d", target, current_node());
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(SIZE);
            if (!blocks[i]) die("malloc failed");
            memset(blocks[i], 1, SIZE);
        }
        /* What it held of its old node may come first: at most 64 KiB of one size. */
        for (int i = 64 * 1024 / SIZE; i < BLOCKS; i++)
            expect(node_of(blocks[i]) == target, "moved to node %d: block %d is on node %d", target, i,
                   node_of(blocks[i]));
        for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
        pthread_barrier_wait(&barrier);
    }
}

int main(int count, char **words) {
    if (count != 2) die("usage: moved raw|other|other-pthread");
    raw = !strcmp(words[1], "raw");
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&mover, NULL, work, NULL) != 0) die("cannot start a thread");
    pthread_barrier_wait(&barrier);
    for (int step = 0; step < 12; step++) {
        int node = (step * 3 + 1) % 8, cpu = cpu_of_node(node);
        if (!raw) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET((size_t)cpu, &set);
            int error = !strcmp(words[1], "other") ? sched_setaffinity(tid, sizeof set, &set)
                                                   : pthread_setaffinity_np(mover, sizeof set, &set);
            if (error) die("setting the other thread's affinity failed");
            CPU_ZERO(&set);
            if (sched_getaffinity(tid, sizeof set, &set) != 0) die("sched_getaffinity failed");
            expect(CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)cpu, &set),
                   "the other thread's affinity is not what was set");
        }
        target = node;
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    target = -1;
    pthread_barrier_wait(&barrier);
    pthread_join(mover, NULL);
    return verdict();
}
