/* lanes LANES ROUNDS: each lane starts a thread, waits for its end and starts the next. All of a round end together.
 * The threads of a lane run on one node, but for one in ten: in the first rounds lanes come while others still
 * begin. */
#include "interface.h"

enum { MOST_LANES = 64 };

static pthread_barrier_t end_of_round;
static int rounds;
static int node_of_lane[MOST_LANES];
static int moves_of_lane[MOST_LANES];

static void *worker(void *lane) {
    const int node = current_node();
    int *const before = &node_of_lane[(long)lane];
    if (*before >= 0 && *before != node) moves_of_lane[(long)lane]++;
    *before = node;
    free(malloc(100));
    pthread_barrier_wait(&end_of_round);
    return NULL;
}

static void *run_lane(void *lane) {
    for (int r = 0; r < rounds; r++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, lane)) die("pthread_create");
        pthread_join(thread, NULL);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) die("usage: lanes LANES ROUNDS");
    const int lanes = (int)number(words[1], "LANES");
    rounds = (int)number(words[2], "ROUNDS");
    if (lanes > MOST_LANES) die("%d lanes are too many", lanes);
    pthread_barrier_init(&end_of_round, NULL, (unsigned)lanes);
    pthread_t thread[MOST_LANES];
    for (long lane = 0; lane < lanes; lane++) {
        node_of_lane[lane] = -1;
        if (pthread_create(&thread[lane], NULL, run_lane, (void *)lane)) die("pthread_create");
    }
    for (int lane = 0; lane < lanes; lane++) pthread_join(thread[lane], NULL);
    int moves = 0;
    for (int lane = 0; lane < lanes; lane++) moves += moves_of_lane[lane];
    expect(moves * 10 <= lanes * rounds, "%d of %d threads went to another node", moves, lanes * rounds);
    return verdict();
}
