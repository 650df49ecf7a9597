/* A program that opens the library by dlopen(): malloc, pthread_create() and sched_getaffinity() are libc's, so nothing
 * of what the program sees is bound, and neither are its children.
 *   opened        the library is the one in LD_PRELOAD, without which the program starts itself again */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, SLOW = 600000, SLOW_PATHS = 1000 };
static void *(*own_malloc)(size_t);
static void (*own_free)(void *);
static pthread_barrier_t together;
static uint64_t all;

static void use(void) {
    for (int i = 0; i < SLOW_PATHS; i++) own_free(own_malloc(SLOW));
}

static void *work(void *argument) {
    const int number = (int)(intptr_t)argument;
    pthread_barrier_wait(&together);
    use();
    expect(kernels_mask() == all, "thread %d may run on CPUs %#lx of %#lx", number, (long)kernels_mask(), (long)all);
    const pid_t child = fork();
    if (child == 0) _exit(kernels_mask() != all);
    int status = -1;
    waitpid(child, &status, 0);
    expect(status == 0, "the child of thread %d may not run on all CPUs", number);
    pthread_barrier_wait(&together);
    return NULL;
}

int main(int count, char **words) {
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded) {
        setenv("OPENED", preloaded, 1);
        unsetenv("LD_PRELOAD");
        execv("/proc/self/exe", words);
    }
    void *library = getenv("OPENED") ? dlopen(getenv("OPENED"), RTLD_NOW) : NULL;
    if (count != 1 || !library) die("usage: LD_PRELOAD=LIBRARY opened; %s", library ? "" : dlerror());
    own_malloc = (void *(*)(size_t))dlsym(library, "malloc");
    own_free = (void (*)(void *))dlsym(library, "free");
    expect(own_malloc != malloc, "the library's malloc is the program's");
    all = kernels_mask();
    use();
    pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    return verdict();
}
