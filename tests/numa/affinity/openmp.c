/* OpenMP counts the CPUs that the user gave, before and after its threads are bound; and each
 * thread's memory is on the node where the thread is.
 *   openmp CPUS own|policy     own: OMP_PROC_BIND and OMP_PLACES=cores decide, one CPU a thread */
#include <omp.h>

#include "check.h"

static int allowed_by_kernel(void) {
    char line[4096];
    int first, last, bytes, cpus = 0;
    FILE *file = fopen("/proc/thread-self/status", "r"); /* sched_getaffinity() answers with the user's mask */
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Cpus_allowed_list:\t", 19) != 0) continue;
        for (char *at = line + 19; sscanf(at, "%d%n", &first, &bytes) == 1; at += *at == ',') {
            last = first;
            at += bytes;
            if (*at == '-' && sscanf(at, "-%d%n", &last, &bytes) == 1) at += bytes;
            cpus += last - first + 1;
        }
    }
    if (file) fclose(file);
    return cpus;
}

int main(int count, char **words) {
    if (count != 3) die("usage: openmp CPUS own|policy");
    int cpus = (int)number(words[1], "CPUS"), own = !strcmp(words[2], "own");
    expect(omp_get_num_procs() == cpus, "at the start OpenMP counts %d CPUs", omp_get_num_procs());
    expect(omp_get_max_threads() == cpus, "at the start OpenMP wants %d threads", omp_get_max_threads());
    for (int region = 0; region < 3; region++) {
#pragma omp parallel
        {
            free(malloc(1 << 20)); /* that it allocates binds it */
            int node = current_node();
            expect(omp_get_num_threads() == cpus, "%d threads", omp_get_num_threads());
            expect(allowed_by_kernel() == (own ? 1 : 2), "thread %d may run on %d CPUs", omp_get_thread_num(),
                   allowed_by_kernel());
            for (size_t size = 16; size <= 1 << 20; size *= 4) {
                char *block = malloc(size);
                if (!block) die("malloc(%zu) failed", size);
                memset(block, 1, size);
                expect(pages_elsewhere(block, size, node, NULL) == 0, "thread %d on node %d: %zu bytes are on node %d",
                       omp_get_thread_num(), node, size, node_of(block));
                free(block);
            }
        }
        expect(omp_get_num_procs() == cpus, "after region %d OpenMP counts %d CPUs", region, omp_get_num_procs());
    }
    return verdict();
}
