/* teams SECONDS: OpenMP's teams after a thread of pthread_create(), which many libraries start: the masks that threads
 * have then are what the runtime goes by. A flat team and two nested ones allocate, compute and free; a child prints
 * its mask. */
#include <omp.h>
#include "own_pages.h"

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

/* A team of `outer` threads, each of which has one of `inner`. */
static void work(const char *name, int outer, int inner, double length, struct own *own) {
    int threads = 0;
    say("begin %s\n", name);
    double until = seconds() + length;
#pragma omp parallel num_threads(outer)
#pragma omp parallel num_threads(inner) reduction(+ : threads)
    {
        struct own mine = {0};
        threads = 1;
        while (seconds() < until) allocate_and_compute(&mine);
        add_own_pages(&mine, own);
    }
    say("end\n");
    say("%s: %d threads\n", name, threads);
}

int main(int count, char **words) {
    if (count != 2) die("usage: teams SECONDS");
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, NULL) != 0) die("cannot start a thread");
    omp_set_max_active_levels(2);
    struct own own = {0};
    say("processors: %d, threads of a team: %d\n", omp_get_num_procs(), omp_get_max_threads());
    double length = strtod(words[1], NULL);
    work("flat", omp_get_max_threads(), 1, length, &own);
    work("nested", 2, 2, length, &own);
    print_own_pages("teams", &own);
    return system("exec grep Cpus_allowed_list /proc/self/status");
}
