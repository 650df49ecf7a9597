/* How many CPUs a program has in use whose threads do not work alike. Prints a line of JSON: of each of two phases of
 * SECONDS, the processor time over the time.
 *   cpus pairs THREADS SECONDS    every second thread computes, the others sleep; none allocates
 *   cpus once ...                 the same, and each thread has allocated one block
 *   cpus later ...                all allocate much first; then as above
 *   cpus phases ...               all allocate while they work: the even ones in the first phase, the odd ones in the
 *                                 second
 *   cpus all ...                  all allocate and compute in both phases */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 256, OBJECTS = 64, SETTLE = 200000 };
static enum { PAIRS, ONCE, LATER, PHASES, ALL } mode;
static const char *const modes[] = {"pairs", "once", "later", "phases", "all"};
static atomic_int stop, phase;

static void compute(void) {
    for (volatile int k = 0; k < 20000; k++) continue;
}

static void allocate(int rounds) {
    void *object[OBJECTS];
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < OBJECTS; i++) *(volatile char *)(object[i] = malloc(16 + i * 67 % 3000)) = 1;
        for (size_t i = 0; i < OBJECTS; i++) free(object[i]);
    }
}

static void *work(void *argument) {
    int odd = (int)(intptr_t)argument & 1;
    void *block = mode == ONCE ? malloc(100000) : NULL;
    if (mode == LATER) allocate(200);
    while (!stop) {
        if (mode == PHASES ? phase == odd : mode != ALL && odd) {
            usleep(20000);
            continue;
        }
        if (mode >= PHASES) allocate(1);
        compute();
    }
    free(block);
    return NULL;
}

static double on_clock(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpus_in_use(unsigned interval) {
    usleep(SETTLE);
    double start = on_clock(CLOCK_MONOTONIC), used = on_clock(CLOCK_PROCESS_CPUTIME_ID);
    sleep(interval);
    return (on_clock(CLOCK_PROCESS_CPUTIME_ID) - used) / (on_clock(CLOCK_MONOTONIC) - start);
}

int main(int count, char **words) {
    const char *usage = "usage: cpus pairs|once|later|phases|all THREADS SECONDS";
    if (count != 4) die("%s", usage);
    while (mode <= ALL && strcmp(words[1], modes[mode])) mode++;
    if (mode > ALL) die("%s", usage);
    unsigned long threads = number(words[2], "THREADS");
    if (threads < 1 || threads > MOST) die("THREADS: 1 to %d", MOST);
    pthread_t thread[MOST];
    for (unsigned long t = 0; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)t) != 0) die("cannot start thread %lu", t);
    sleep(1);
    double first = cpus_in_use((unsigned)number(words[3], "SECONDS"));
    phase = 1;
    printf("{\"cpus\": [%.2f, %.2f]}\n", first, cpus_in_use((unsigned)number(words[3], "SECONDS")));
    stop = 1;
    for (unsigned long t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    return 0;
}
