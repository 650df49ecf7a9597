/* Threads that end in unusual ways, one after the other:
 *   ends raw THREADS       by a raw system call, which runs no destructor: each leaves its room on its node to a later
 *                          one. More threads than there are CPUs
 *   ends signal THREADS    by a signal's handler while they begin: the others start and end all the same */
#include "check.h"

#include <pthread.h>
#include <signal.h>

enum { SLOW = 1 << 20, SLOW_PATHS = 64 };

static void *work(void *cpus) {
    for (int i = 0; i < SLOW_PATHS; i++) free(malloc(SLOW));
    *(int *)cpus = __builtin_popcountll(kernels_mask());
    syscall(SYS_exit, 0);
    return NULL;
}

static void end_by_handler(int number) {
    (void)number;
    pthread_exit(NULL);
}

static void *wait_for_signal(void *unused) {
    for (;;) pause();
    return unused;
}

static bool are_signalled;

/* The library asks who a new thread is while it holds its lock: a moment at which the signal comes. */
pthread_t pthread_self(void) {
    static __thread bool was_asked;
    if (are_signalled && !was_asked && gettid() != getpid()) {
        was_asked = true;
        syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    }
    return (pthread_t)__builtin_thread_pointer();
}

static int signalled(int threads) {
    alarm(300); /* a thread that cannot be started hangs */
    signal(SIGUSR1, end_by_handler);
    are_signalled = true;
    for (int t = 0; t < threads; t++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_signal, NULL) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
    }
    expect(threads > 0, "no thread ended");
    return verdict();
}

int main(int count, char **words) {
    if (count != 3) die("usage: ends raw|signal THREADS");
    if (!strcmp(words[1], "signal")) return signalled(atoi(words[2]));
    for (int t = 0; t < atoi(words[2]); t++) {
        pthread_t thread;
        int cpus = 0;
        if (pthread_create(&thread, NULL, work, &cpus) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        expect(cpus > 0 && cpus < cpu_count(), "thread %d may run on %d CPUs: it is not bound", t, cpus);
    }
    return verdict();
}
