/* Threads that end in unusual ways, one after the other:
 *   ends raw THREADS       by a raw system call, which runs no destructor: each leaves its room on its node to a later
 *                          one. More threads than there are CPUs
 *   ends signal THREADS    by a signal's handler while they begin: the others start and end all the same
 *   ends early THREADS     by one at or before their first instruction, beside a filter that asks for every thread
 *   ends rooms THREADS     the same: the next thread of that handle takes the room. NUMALLOC_BINDING=saturate */
#include "check.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

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

static void expect_bound(int threads) {
    for (int t = 0; t < threads; t++) {
        pthread_t thread;
        int cpus = 0;
        if (pthread_create(&thread, NULL, work, &cpus) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        expect(cpus > 0 && cpus < cpu_count(), "thread %d may run on %d CPUs: it is not bound", t, cpus);
    }
}

static int signalled_early(int threads) {
    enum { AT_ONCE = 32 }; /* libc unmaps their stacks: it keeps 40 MiB */
    pthread_t thread[AT_ONCE];
    alarm(300);
    signal(SIGUSR1, end_by_handler);
    for (int done = 0; done < threads; done += AT_ONCE) {
        for (int t = 0; t < AT_ONCE; t++) {
            if (pthread_create(&thread[t], NULL, wait_for_signal, NULL) != 0) die("cannot start a thread");
            pthread_kill(thread[t], SIGUSR1);
        }
        for (int t = 0; t < AT_ONCE; t++) pthread_join(thread[t], NULL);
        /* Refused, after the masks of all threads have been widened. */
        expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1, "a filter at NULL was installed");
    }
    expect_bound(4);
    return verdict();
}

static void *note_mask(void *mask) {
    *(uint64_t *)mask = kernels_mask();
    return NULL;
}

static void start_and_end(const pthread_attr_t *attr) {
    pthread_t thread;
    kill(getpid(), SIGUSR1); /* main blocks it: the new thread's attributes do not */
    if (pthread_create(&thread, attr, wait_for_signal, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
}

/* Threads that still counted would fill all nodes, from that of main, which stays there. The kernel may take a while to
 * end a thread that has been joined, so some count a little longer. */
static int rooms_come_back(int threads) {
    enum { NODES = 4 };
    const struct sched_param low = {1}, high = {10};
    uint64_t seen[NODES] = {0};
    cpu_set_t all, one;
    sigset_t none, user;
    pthread_attr_t attr, before_creator;
    alarm(300);
    signal(SIGUSR1, end_by_handler);
    sigemptyset(&none);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigprocmask(SIG_BLOCK, &user, NULL);
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    pthread_attr_init(&attr);
    pthread_attr_init(&before_creator);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || pthread_attr_setaffinity_np(&attr, sizeof all, &all) != 0 ||
        sched_setaffinity(0, sizeof one, &one) != 0)
        die("no affinity");
    if (pthread_attr_setsigmask_np(&attr, &none) != 0 || pthread_attr_setsigmask_np(&before_creator, &none) != 0)
        die("no mask in attributes");
    /* On main's CPU with a higher priority: it ends before pthread_create() has returned. */
    pthread_attr_setinheritsched(&before_creator, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&before_creator, SCHED_FIFO);
    pthread_attr_setschedparam(&before_creator, &high);
    if (sched_setscheduler(0, SCHED_FIFO, &low) != 0) die("no priority");

    for (int t = 0; t < threads; t++) {
        pthread_t thread;
        uint64_t mask = 0;
        int known = 0;
        start_and_end(&attr);
        start_and_end(&before_creator);
        if (pthread_create(&thread, &attr, note_mask, &mask) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        while (known < NODES && seen[known] != 0 && seen[known] != mask) known++;
        expect(known < NODES, "thread %d is on one more node: CPUs %#lx", t, mask);
        if (known < NODES) seen[known] = mask;
    }
    return verdict();
}

int main(int count, char **words) {
    if (count != 3) die("usage: ends raw|signal|early|rooms THREADS");
    const int threads = atoi(words[2]);
    if (!strcmp(words[1], "signal")) return signalled(threads);
    if (!strcmp(words[1], "early")) return signalled_early(threads);
    if (!strcmp(words[1], "rooms")) return rooms_come_back(threads);
    expect_bound(threads);
    return verdict();
}
