/* Where the kernel balances memory between nodes (AutoNUMA), it may move the pages of blocks of 16 MiB and more whose
 * node nobody has named. Their memory comes home when they are freed.
 *   balanced local     started by numactl --localalloc: no block
 *   balanced home      which blocks; what is freed elsewhere is allocated at home
 *   balanced follow    threads of another node work on a block until its pages are there, however long that takes */
#include <linux/mempolicy.h>

#include "interface.h"

#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING (1 << 13)
#endif

enum { MIB = 1 << 20, HOME = 1, AWAY = 2 };

static int policy_of(const void *block) {
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, block, MPOL_F_ADDR)) die("get_mempolicy: %s", strerror(errno));
    return mode;
}

static bool may_move(const void *block) { return policy_of(block) == (MPOL_BIND | MPOL_F_NUMA_BALANCING); }

static char *filled(size_t bytes) {
    char *block = malloc(bytes);
    if (!block) die("malloc(%zu) failed", bytes);
    memset(block, 1, bytes);
    return block;
}

/* As the kernel does when threads of that node work on the block. */
static void move_away(void *block, size_t bytes) {
    for (char *page = (char *)((uintptr_t)block & ~(PAGE - 1)); page < (char *)block + bytes; page += PAGE) {
        void *one = page;
        int to = AWAY, status = -EBUSY;
        for (int tries = 0; tries < 100 && status == -EBUSY; tries++) /* the kernel is at work on the page */
            if (syscall(SYS_move_pages, 0, 1, &one, &to, &status, MPOL_MF_MOVE)) die("move_pages: %s", strerror(errno));
    }
    if (pages_elsewhere(block, bytes, AWAY, NULL)) die("the pages did not move");
}

static void expect_home(const void *block, size_t bytes, const char *what) {
    uint64_t elsewhere = pages_elsewhere(block, bytes, HOME, NULL);
    expect(elsewhere == 0, "%s: %llu pages are not at home", what, (unsigned long long)elsewhere);
}

/* Started under the policy `local`, which says that the kernel shall not balance. */
static void local(void) {
    char *given = filled(24 * MIB);
    expect(!may_move(given) && policy_of(given) == MPOL_PREFERRED, "24 MiB: policy %d", policy_of(given));
    free(given);
}

/* The library has seen that the kernel balances. From here on only this program moves pages. */
static void stop_balancing(void) {
    FILE *file = fopen("/proc/sys/kernel/numa_balancing", "w");
    if (!file || fputs("0", file) < 0 || fclose(file)) die("cannot switch AutoNUMA off");
}

static void home(void) {
    stop_balancing();
    char *small = filled(8 * MIB), *large = filled(24 * MIB);
    expect(!may_move(small) && policy_of(small) == MPOL_PREFERRED, "8 MiB: policy %d", policy_of(small));
    expect(may_move(large), "24 MiB: policy %d", policy_of(large));
    expect_home(large, 24 * MIB, "24 MiB");
    char *named = API(numalloc_malloc_on_node)(24 * MIB, HOME);
    memset(named, 1, 24 * MIB);
    expect(!may_move(named), "the program has named the node: policy %d", policy_of(named));

    move_away(large, 24 * MIB);
    expect(API(numalloc_node_of)(large) == AWAY, "moved: numalloc_node_of says %d", API(numalloc_node_of)(large));
    uintptr_t place = (uintptr_t)large;
    free(large);
    large = calloc(24, MIB);
    expect((uintptr_t)large == place, "the memory is used again");
    for (size_t i = 0; i < 24 * MIB; i++)
        if (large[i]) die("calloc: byte %zu is not 0", i);
    memset(large, 1, 24 * MIB);
    expect_home(large, 24 * MIB, "freed elsewhere");

    large = realloc(large, 64 * MIB);
    if (!large) die("realloc failed");
    memset(large, 1, 64 * MIB);
    expect(may_move(large), "64 MiB: policy %d", policy_of(large));
    move_away(large, 64 * MIB);
    large = realloc(large, 32 * MIB);
    expect(pages_elsewhere(large, 32 * MIB, AWAY, NULL) == 0, "what the program keeps stays where it was");
    char *behind = filled(24 * MIB);
    expect_home(behind, 24 * MIB, "cut off elsewhere");

    large[0] = 2;
    large = API(numalloc_realloc_on_node)(large, 24 * MIB, HOME);
    expect_home(large, 24 * MIB, "named by numalloc_realloc_on_node()");
    expect(!may_move(large) && large[0] == 2, "named by numalloc_realloc_on_node(): policy %d", policy_of(large));
    move_away(behind, 24 * MIB);
    expect(API(numalloc_move)(behind, HOME) == 0, "numalloc_move: %s", strerror(errno));
    expect_home(behind, 24 * MIB, "numalloc_move()");
    expect(!may_move(behind), "named by numalloc_move(): policy %d", policy_of(behind));

    char *grown = API(numalloc_malloc_on_node)(100000, HOME);
    grown = realloc(grown, 24 * MIB);
    expect(!may_move(grown), "named, then grown: policy %d", policy_of(grown));
    free(grown);

    if (API(numalloc_set_thread_placement)("preferred:2")) die("numalloc_set_thread_placement: %s", strerror(errno));
    char *there = malloc(24 * MIB);
    expect(!may_move(there), "the program has chosen a placement: policy %d", policy_of(there));
    API(numalloc_set_thread_placement)(NULL);
    free(there);
    char *untouched = malloc(24 * MIB);
    expect(API(numalloc_node_of)(untouched) == HOME, "untouched: node %d", API(numalloc_node_of)(untouched));
    free(untouched);
    free(small);
    free(large);
    free(behind);
    free(named);
}

static char *block;
enum { FOLLOWING = 24 * MIB };

static void *work(void *unused) {
    (void)unused;
    pin_to_cpu(cpu_of_node(AWAY));
    for (uint64_t on[SHOWN_NODES] = {0}; on[AWAY] < FOLLOWING / PAGE * 95 / 100;) {
        for (size_t i = 0; i < FOLLOWING; i += 64) ((volatile char *)block)[i]++;
        memset(on, 0, sizeof on);
        pages_elsewhere(block, FOLLOWING, AWAY, on);
    }
    return NULL;
}

static void follow(void) {
    block = filled(FOLLOWING);
    expect_home(block, FOLLOWING, "before");
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    free(block);
    block = filled(FOLLOWING);
    expect_home(block, FOLLOWING, "after");
    free(block);
}

int main(int count, char **words) {
    if (count != 2) die("usage: balanced local|home|follow");
    pin_to_cpu(cpu_of_node(HOME));
    if (!strcmp(words[1], "local")) local();
    else if (!strcmp(words[1], "home")) home();
    else follow();
    return verdict();
}
