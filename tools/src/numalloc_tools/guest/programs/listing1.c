/* JArena's listing 1: each of T threads allocates blocks and writes them, a barrier, and each frees
 * the blocks of another thread. After warm-up rounds, in each round every writer asks the kernel
 * where the pages are that it wrote. A NUMA-aware allocator has no remote page.
 *
 *   listing1 THREADS SIZE BLOCKS ROUNDS own|left|other free|pinned
 *
 * own, left: who frees is the thread itself, or its right neighbour; other: a thread on another node.
 * free: threads run where the allocator or the system puts them; pinned: thread t stays on CPU t.
 * Prints one line of JSON. */
#include "pages.h"

enum { WARM_UP = 1, TIMED_BYTES = 16384 };

struct worker {
    pthread_t thread;
    int number;
    char **blocks;
    struct written *written;
    struct tally tally;
    double write_seconds;
    uint64_t damaged; /* blocks that did not hold what their writer wrote when they were freed */
};

static struct worker *workers;
static int *thread_node, *partner, threads, apart;
static size_t size, blocks, rounds;
static enum { OWN, LEFT, OTHER } who_frees;
static bool pinned;
static pthread_barrier_t barrier;

static void choose_partners(void) {
    for (int t = 0; t < threads; t++) partner[t] = who_frees == OWN ? t : (t - 1 + threads) % threads;
    if (who_frees == OTHER) apart = pair_across_nodes(thread_node, partner, threads);
}

static bool intact(const char *block, char mark) {
    return block[0] == mark && block[size / 2] == mark && block[size - 1] == mark;
}

static void one_round(struct worker *me, bool measured) {
    size_t noted = 0;
    for (size_t i = 0; i < blocks; i++) {
        me->blocks[i] = malloc(size);
        if (!me->blocks[i]) die("malloc(%zu) failed", size);
    }
    /* Small blocks are timed a few pages' worth at a time: the clock costs a system call here. */
    size_t batch = size < TIMED_BYTES ? TIMED_BYTES / size : 1;
    for (size_t i = 0; i < blocks; i += batch) {
        size_t end = i + batch < blocks ? i + batch : blocks;
        int node = current_node();
        double start = seconds();
        for (size_t k = i; k < end; k++) memset(me->blocks[k], 'a' + me->number % 26, size);
        if (measured) me->write_seconds += seconds() - start;
        for (size_t k = i; k < end; k++) noted = note_pages(me->written, noted, me->blocks[k], size, node);
    }
    if (measured) count_pages(&me->tally, me->written, noted);
    thread_node[me->number] = current_node();
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) choose_partners();
    pthread_barrier_wait(&barrier);
    struct worker *writer = &workers[partner[me->number]];
    for (size_t i = 0; i < blocks; i++) {
        me->damaged += !intact(writer->blocks[i], (char)('a' + writer->number % 26));
        free(writer->blocks[i]);
    }
    pthread_barrier_wait(&barrier);
}

static void *work(void *argument) {
    struct worker *me = argument;
    if (pinned) pin_to_cpu(me->number % (int)sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t round = 0; round < WARM_UP + rounds; round++) one_round(me, round >= WARM_UP);
    return NULL;
}

int main(int count, char **words) {
    if (count != 7) die("usage: listing1 THREADS SIZE BLOCKS ROUNDS own|left|other free|pinned");
    threads = (int)number(words[1], "THREADS");
    size = number(words[2], "SIZE");
    blocks = number(words[3], "BLOCKS");
    rounds = number(words[4], "ROUNDS");
    who_frees = !strcmp(words[5], "own") ? OWN : !strcmp(words[5], "left") ? LEFT : OTHER;
    pinned = !strcmp(words[6], "pinned");
    if (threads < 1 || size < 1 || blocks < 1 || rounds < 1) die("THREADS, SIZE, BLOCKS and ROUNDS start at 1");

    workers = map((size_t)threads * sizeof *workers);
    thread_node = map((size_t)threads * sizeof *thread_node);
    partner = map((size_t)threads * sizeof *partner);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        workers[t].number = t;
        workers[t].blocks = map(blocks * sizeof(char *));
        workers[t].written = map(blocks * (size / PAGE + 2) * sizeof(struct written));
    }
    /* As with OpenMP, the first thread of the team is the program's own. */
    for (int t = 1; t < threads; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) die("cannot start thread %d", t);
    work(&workers[0]);
    for (int t = 1; t < threads; t++) pthread_join(workers[t].thread, NULL);

    struct tally sum = {0};
    double write_seconds = 0;
    uint64_t damaged = 0, threads_on[SHOWN_NODES] = {0};
    for (int t = 0; t < threads; t++) {
        add_tally(&sum, &workers[t].tally);
        write_seconds += workers[t].write_seconds;
        damaged += workers[t].damaged;
        threads_on[thread_node[t] % SHOWN_NODES]++;
    }
    printf(
        "{\"program\":\"listing1\",\"threads\":%d,\"size\":%zu,\"blocks\":%zu,\"rounds\":%zu,\"free\":\"%s\","
        "\"threads_are\":\"%s\",\"pages\":%llu,\"remote\":%llu,\"unknown\":%llu,\"damaged\":%llu,"
        "\"write_seconds\":%.6f,\"freed_across\":%d,",
        threads, size, blocks, rounds, words[5], pinned ? "pinned" : "free", (unsigned long long)sum.pages,
        (unsigned long long)sum.remote, (unsigned long long)sum.unknown, (unsigned long long)damaged, write_seconds,
        apart);
    print_spread("spread", sum.on);
    printf(",");
    print_spread("threads_on", threads_on);
    printf("}\n");
    return 0;
}
