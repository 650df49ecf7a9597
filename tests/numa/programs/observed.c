/* A program that knows where its pages are, and is looked at from outside meanwhile.
 *   observed local|shared THREADS MEGABYTES COMMAND...
 * Each thread uses as many megabytes: its own, from malloc, or all the same, which main has mapped and written.
 * Prints a line of JSON, the bytes on each node and the share that is remote to the threads that use it, runs
 * the command with PID in it replaced by its own number, and ends as that does. */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

enum { MOST = 64, WAIT_MICROSECONDS = 50000, ROW = 20, ROW_SIZE = 40000 };
static int threads;
static size_t bytes;
static volatile char *common; /* NULL: each thread has its own */
static struct {
    uint64_t on[SHOWN_NODES], remote;
} used[MOST];
static pthread_barrier_t counted;

static void pin_to_share(int number) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) die("sched_getaffinity: %s", strerror(errno));
    int wanted = number * CPU_COUNT(&set) / threads;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &set) && wanted-- == 0) return pin_to_cpu(cpu);
}

static void *work(void *argument) {
    int number = (int)(intptr_t)argument;
    volatile char *mine = common;
    void *row[ROW];
    if (common) {
        pin_to_share(number);
    } else {
        if (!(mine = malloc(bytes))) die("malloc failed");
        memset((void *)mine, 1, bytes);
    }
    used[number].remote = pages_elsewhere((void *)mine, bytes, current_node(), used[number].on);
    pthread_barrier_wait(&counted);
    for (;;) { /* a little, so that the others have their turn in an emulator too */
        for (size_t at = 0; at < bytes; at += PAGE) mine[at]++;
        for (int i = 0; i < ROW; i++) row[i] = malloc(ROW_SIZE); /* the library has work, and writes its statistics */
        for (int i = 0; i < ROW; i++) free(row[i]);
        usleep(WAIT_MICROSECONDS);
    }
    return NULL;
}

static void report(void) {
    uint64_t on[SHOWN_NODES] = {0}, remote = 0;
    for (int t = 0; t < threads; t++) {
        remote += used[t].remote;
        for (int node = 0; node < SHOWN_NODES; node++) on[node] += (common && t ? 0 : used[t].on[node]) * PAGE;
    }
    printf("{");
    print_spread("bytes", on);
    printf(",\"remote\":%.6f}\n", (double)remote * (double)PAGE / ((double)bytes * threads));
    fflush(stdout);
}

int main(int count, char **words) {
    if (count < 5) die("usage: see the beginning of observed.c");
    bool shared = !strcmp(words[1], "shared");
    threads = (int)number(words[2], "THREADS");
    bytes = number(words[3], "MEGABYTES") << 20;
    if (threads < 1 || threads > MOST) die("THREADS: 1 to %d", MOST);
    if (shared) memset((void *)(common = map(bytes)), 1, bytes);
    pthread_barrier_init(&counted, NULL, (unsigned)threads + 1);
    pthread_t thread;
    for (int t = 0; t < threads; t++)
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    pthread_barrier_wait(&counted);
    report();

    char own[32];
    snprintf(own, sizeof own, "%d", (int)getpid());
    for (int i = 4; i < count; i++)
        if (!strcmp(words[i], "PID")) words[i] = own;
    unsetenv("LD_PRELOAD");
    extern char **environ;
    pid_t child;
    int status, error = posix_spawnp(&child, words[4], NULL, NULL, words + 4, environ);
    if (error) die("%s: %s", words[4], strerror(error));
    if (waitpid(child, &status, 0) != child) die("waitpid: %s", strerror(errno));
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}
