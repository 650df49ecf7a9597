/* Memory stays on the node that the program, or its user, has named.
 *   kept realloc      a thread that is not bound grows a block of another node, to which the kernel has moved it from
 *   kept owners NODE  the process may run on the node only: each owner is said to live there
 *   kept ending NODE  memory comes from the node (memory=bind), also when the thread's heap has been given back */
#include "interface.h"

#include <sys/wait.h>

enum { LATE = 4, BLOCK = 100000 };

static void move_from_outside(pid_t thread, int node) {
    const pid_t child = fork();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu_of_node(node), &set);
    if (child == 0) _exit(sched_setaffinity(thread, sizeof set, &set) != 0);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) die("the other process failed");
}

static void grow(void) {
    static const size_t sizes[] = {1000, 40000, 100000, 600000};
    move_from_outside(gettid(), 0);
    free(malloc(300000)); /* its heap follows */
    void *block[4];
    for (int i = 0; i < 4; i++) block[i] = API(numalloc_malloc_on_node)(sizes[i], 0);
    move_from_outside(gettid(), 1);
    expect(current_node() == 1, "the thread was not moved");
    for (int i = 0; i < 4; i++) {
        block[i] = realloc(block[i], 3 * sizes[i]);
        memset(block[i], 1, 3 * sizes[i]);
        const int node = API(numalloc_node_of)(block[i]);
        uint64_t on[SHOWN_NODES] = {0};
        expect(node == 0, "a block of %zu bytes has gone to node %d", sizes[i], node);
        expect(pages_elsewhere(block[i], 3 * sizes[i], 0, on) == 0, "pages of a block of %zu bytes are elsewhere",
               sizes[i]);
        free(block[i]);
    }
}

static int named;
static pthread_key_t last;
static void allocate_late(void *round) {
    uint64_t on[SHOWN_NODES] = {0};
    char *block = malloc(BLOCK);
    memset(block, 1, BLOCK);
    expect(pages_elsewhere(block, BLOCK, named, on) == 0, "destructor round %d: memory is elsewhere",
           (int)(intptr_t)round);
    free(block);
    if ((intptr_t)round < LATE) pthread_setspecific(last, (char *)round + 1);
}
static void *end_late(void *unused) {
    pthread_setspecific(last, (void *)1);
    return unused;
}

int main(int count, char **words) {
    if (count < 2) die("usage: kept realloc, or kept owners|ending NODE");
    if (!strcmp(words[1], "realloc")) {
        grow();
        return verdict();
    }
    named = atoi(words[2]);
    for (int owner = 1; owner < 9; owner++)
        if (!strcmp(words[1], "owners"))
            expect(API(psm_owner_node)(owner) == named, "owner %d is said to be on another node", owner);
    pthread_t thread;
    pthread_key_create(&last, allocate_late);
    if (strcmp(words[1], "ending")) return verdict();
    if (pthread_create(&thread, NULL, end_late, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    return verdict();
}
