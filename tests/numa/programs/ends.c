/* Threads that end by a raw system call, which runs no destructor: each leaves its room on its node to a later one.
 *   ends THREADS     one after the other, more than there are CPUs */
#include "check.h"

#include <pthread.h>

enum { SLOW = 1 << 20, SLOW_PATHS = 64 };

static int allowed_cpus(void) {
    char line[4096];
    int cpus = 0;
    FILE *file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "Cpus_allowed_list:\t", 19)) cpus = __builtin_popcountll(parse_set(line + 19));
    fclose(file);
    return cpus;
}

static void *work(void *cpus) {
    for (int i = 0; i < SLOW_PATHS; i++) free(malloc(SLOW));
    *(int *)cpus = allowed_cpus();
    syscall(SYS_exit, 0);
    return NULL;
}

int main(int count, char **words) {
    if (count != 2) die("usage: ends THREADS");
    for (int t = 0; t < atoi(words[1]); t++) {
        pthread_t thread;
        int cpus = 0;
        if (pthread_create(&thread, NULL, work, &cpus) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        expect(cpus > 0 && cpus < cpu_count(), "thread %d may run on %d CPUs: it is not bound", t, cpus);
    }
    return verdict();
}
