/* Partitioned shared memory: every block lies on the node of its owner.
 *   psm neighbours THREADS     JArena's listing 1: thread t allocates blocks of 16 B to 8 MiB for its right
 *                              neighbour, who writes them; t's left neighbour's are freed by t
 *   psm promised THREADS       main allocates for owners that do not exist yet, the last one first;
 *                              then the threads come, one after the other, so that the policy alone would
 *                              always choose the same node; each must be where its blocks are
 *   psm registered THREADS     the same with numbers that the threads give themselves in another order, and
 *                              all at a time */
#include "interface.h"

enum { MOST_THREADS = 64, ROUNDS = 2, SIZES = 20, SMALL_COUNT = 60 };

static int threads;
static pthread_barrier_t barrier;
static char *block[MOST_THREADS][SIZES][SMALL_COUNT];
static int promised[MOST_THREADS];
static uint64_t pages[MOST_THREADS], remote[MOST_THREADS];

static size_t size_of(int i) { return (size_t)16 << i; }
static int count_of(int i) { return size_of(i) <= 4096 ? SMALL_COUNT : size_of(i) <= 262144 ? 4 : 1; }

static void allocate_for(int slot, int owner) {
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < count_of(i); k++) {
            block[slot][i][k] = API(psm_alloc)(size_of(i), owner);
            expect(block[slot][i][k], "psm_alloc(%zu, %d): %s", size_of(i), owner, strerror(errno));
        }
}

static void write_and_check(int slot) {
    uint64_t on[SHOWN_NODES] = {0};
    int node = current_node();
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < count_of(i); k++) {
            memset(block[slot][i][k], slot, size_of(i));
            remote[slot] += pages_elsewhere(block[slot][i][k], size_of(i), node, on);
        }
    for (int n = 0; n < SHOWN_NODES; n++) pages[slot] += on[n];
}

static void free_of(int slot) {
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < count_of(i); k++) API(psm_free)(block[slot][i][k]);
}

static void *neighbour(void *argument) {
    int t = (int)(intptr_t)argument, right = (t + 1) % threads, left = (t + threads - 1) % threads;
    expect(API(psm_self)() == t + 1, "thread %d has the number %d", t, API(psm_self)());
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < ROUNDS; round++) {
        allocate_for(right, right + 1);
        pthread_barrier_wait(&barrier);
        write_and_check(t);
        pthread_barrier_wait(&barrier);
        free_of(left);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* Owners beside each other begin at 1 (main is 0), or at 0 when they choose their numbers. */
static int first_owner;

static void *owner(void *argument) {
    int t = (int)(intptr_t)argument, slot = first_owner ? t : threads - 1 - t;
    if (first_owner == 0) expect(API(psm_register)(slot) == 0, "psm_register(%d): %s", slot, strerror(errno));
    expect(API(psm_self)() == slot + first_owner, "thread %d has the number %d", t, API(psm_self)());
    expect(current_node() == promised[slot], "owner %d runs on node %d, promised was %d", slot, current_node(),
           promised[slot]);
    char *own = malloc(3000);
    expect(API(numalloc_node_of)(own) == promised[slot], "malloc of owner %d is elsewhere", slot);
    free(own);
    write_and_check(slot);
    if (first_owner == 0) pthread_barrier_wait(&barrier); /* all live at a time */
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) die("usage: psm neighbours|promised|registered THREADS");
    threads = (int)number(words[2], "THREADS");
    if (threads > MOST_THREADS) die("at most %d threads", MOST_THREADS);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    bool neighbours = !strcmp(words[1], "neighbours");
    first_owner = strcmp(words[1], "registered") != 0;
    if (!neighbours) {
        for (int slot = threads - 1; slot >= 0; slot--) {
            allocate_for(slot, slot + first_owner);
            promised[slot] = API(psm_owner_node)(slot + first_owner);
        }
        for (int slot = 0; slot < threads; slot++) printf("%d ", promised[slot]);
        printf("are the nodes that were promised\n");
    }
    pthread_t handle[MOST_THREADS];
    bool one_by_one = !neighbours && first_owner;
    for (int t = 0; t < threads; t++) {
        if (pthread_create(&handle[t], NULL, neighbours ? neighbour : owner, (void *)(intptr_t)t))
            die("pthread_create");
        if (one_by_one) pthread_join(handle[t], NULL);
    }
    for (int t = 0; t < threads && !one_by_one; t++) pthread_join(handle[t], NULL);
    if (!neighbours)
        for (int slot = 0; slot < threads; slot++) free_of(slot);
    uint64_t all = 0, elsewhere = 0;
    for (int t = 0; t < threads; t++) {
        all += pages[t];
        elsewhere += remote[t];
    }
    printf("%llu pages, %llu remote\n", (unsigned long long)all, (unsigned long long)elsewhere);
    expect(all > 0 && elsewhere == 0, "%llu of %llu pages are remote", (unsigned long long)elsewhere,
           (unsigned long long)all);
    return verdict();
}
