// Prints what OpenMP and the kernel tell a program of its processors: it must be the same with and
// without the library. Then a sum over allocating threads, so that the threads are real.
#include <omp.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static int processors() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

int main() {
    std::printf("max %d procs %d allowed %d bind %d places %d\n", omp_get_max_threads(), omp_get_num_procs(),
                processors(), static_cast<int>(omp_get_proc_bind()), omp_get_num_places());
    int threads = 0;
    std::vector<int> allowed(256);
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp single
        threads = omp_get_num_threads();
        allowed[static_cast<std::size_t>(omp_get_thread_num()) % 256] = processors();
#pragma omp for
        for (int i = 0; i < 20000; ++i) {
            std::vector<long> v(static_cast<std::size_t>(i % 100 + 1), i);
            for (long x : v) sum += x;
        }
    }
    std::printf("threads %d sum %ld allowed", threads, sum);
    for (int i = 0; i < threads && i < 256; ++i) std::printf(" %d", allowed[static_cast<std::size_t>(i)]);
    std::printf("\n");
    std::fflush(stdout);
    return std::system("nproc --all >/dev/null; env -u OMP_NUM_THREADS nproc");
}
