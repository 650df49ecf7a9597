/* Signals around the creation of threads that the library binds:
 *   thread_signals masks    each thread begins with the mask that its creator or its attributes give it, and creators
 *                           keep theirs
 *   thread_signals fault    a handler of SIGSEGV makes the memory of the handle writable, in the creator and not in
 *                           a thread that the program does not know yet
 *   thread_signals fork     a handler forks when its thread is about to return from pthread_create() */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>

enum { ROUNDS = 20 };

static uint64_t bit(int number) { return UINT64_C(1) << (number - 1); }

static uint64_t kernels_signals(const uint64_t *set) {
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, set, &before, sizeof before);
    return before;
}

static void *note_signals(void *at) {
    *(uint64_t *)at = kernels_signals(NULL);
    return NULL;
}

static int note_signals_c11(void *at) {
    note_signals(at);
    return 0;
}

static uint64_t signals_of_thread(const pthread_attr_t *attr) {
    pthread_t thread;
    uint64_t seen = ~UINT64_C(0);
    if (pthread_create(&thread, attr, note_signals, &seen) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    return seen;
}

static uint64_t signals_of_c11_thread(void) {
    thrd_t thread;
    uint64_t seen = ~UINT64_C(0);
    if (thrd_create(&thread, note_signals_c11, &seen) != thrd_success) die("cannot start a thread");
    thrd_join(thread, NULL);
    return seen;
}

static void start_in_vain(void) {
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)1 << 47);
    expect(pthread_create(&thread, &attr, note_signals, NULL) != 0, "a stack of 128 TiB was granted");
    pthread_attr_destroy(&attr);
}

static void check_masks(uint64_t creators) {
    const uint64_t wanted = bit(SIGUSR1) | bit(SIGSEGV);
    kernels_signals(&creators);
    uint64_t seen = signals_of_thread(NULL);
    expect(seen == creators, "a creator's %#lx became %#lx", creators, seen);
    seen = signals_of_c11_thread();
    expect(seen == creators, "a creator's %#lx became %#lx in a thread of C11", creators, seen);

    sigset_t set;
    pthread_attr_t attr;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGSEGV);
    pthread_attr_init(&attr);
    if (pthread_attr_setsigmask_np(&attr, &set) != 0) die("no mask in attributes");
    seen = signals_of_thread(&attr);
    expect(seen == wanted, "%#lx in the attributes became %#lx", wanted, seen);

    pthread_attr_t usual;
    if (pthread_getattr_default_np(&usual) != 0 || pthread_setattr_default_np(&attr) != 0) die("no default attributes");
    seen = signals_of_thread(NULL);
    expect(seen == wanted, "%#lx in the default attributes became %#lx", wanted, seen);
    if (pthread_setattr_default_np(&usual) != 0) die("no default attributes");
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&attr);

    start_in_vain();
    seen = kernels_signals(NULL);
    expect(seen == creators, "the creator's own %#lx is %#lx now", creators, seen);
}

static pthread_t *handle;

static void make_writable(int number) {
    (void)number;
    expect(gettid() == getpid(), "the new thread met the fault");
    mprotect(handle, PAGE, PROT_READ | PROT_WRITE);
}

static void *end_at_once(void *unused) { return unused; }

/* The new thread's priority is higher than its creator's, which runs on the same CPU: it writes the handle first. */
static void run_before_creator(pthread_attr_t *attr) {
    const struct sched_param low = {1}, high = {10};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0 || sched_setscheduler(0, SCHED_FIFO, &low) != 0) die("no priority");
    pthread_attr_init(attr);
    pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attr, SCHED_FIFO);
    pthread_attr_setschedparam(attr, &high);
}

static void check_fault(void) {
    pthread_attr_t attr;
    signal(SIGSEGV, make_writable);
    run_before_creator(&attr);
    handle = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (handle == MAP_FAILED) die("no page");
    for (int i = 0; i < ROUNDS; i++) {
        mprotect(handle, PAGE, PROT_READ);
        if (pthread_create(handle, &attr, end_at_once, NULL) != 0) die("cannot start a thread");
        expect(pthread_join(*handle, NULL) == 0, "the handle is another thread's");
    }
}

static int has_forked; /* an eventfd */
static pid_t child;

/* In the new thread, before its first function. */
static void make_creator_fork(int number) {
    (void)number;
    uint64_t forks;
    syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
    if (read(has_forked, &forks, sizeof forks) != sizeof forks) die("no word of the fork");
}

static void fork_in_creator(int number) {
    (void)number;
    child = fork();
    if (child < 0) die("cannot fork");
    const uint64_t one = 1;
    if (child > 0 && write(has_forked, &one, sizeof one) != sizeof one) die("no word of the fork");
}

static void check_fork(void) {
    pthread_attr_t attr;
    sigset_t user, none;
    alarm(300);
    signal(SIGUSR1, fork_in_creator);
    signal(SIGUSR2, make_creator_fork);
    run_before_creator(&attr);
    has_forked = eventfd(0, 0);
    if (has_forked < 0) die("no eventfd");
    sigemptyset(&none);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR2);
    sigprocmask(SIG_BLOCK, &user, NULL);
    if (pthread_attr_setsigmask_np(&attr, &none) != 0) die("no mask in attributes");
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        int status = 0;
        kill(getpid(), SIGUSR2); /* for the new thread, as main blocks it */
        if (pthread_create(&thread, &attr, end_at_once, NULL) != 0) die("cannot start a thread");
        if (child == 0) {
            if (pthread_create(&thread, NULL, end_at_once, NULL) != 0) _exit(2);
            _exit(pthread_join(thread, NULL));
        }
        pthread_join(thread, NULL);
        expect(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    }
}

int main(int count, char **words) {
    if (count != 2) die("usage: thread_signals masks|fault|fork");
    if (!strcmp(words[1], "fork")) {
        check_fork();
        return verdict();
    }
    if (!strcmp(words[1], "fault")) {
        check_fault();
        return verdict();
    }
    for (int i = 0; i < ROUNDS; i++) {
        check_masks(0);
        check_masks(bit(SIGUSR2));
        check_masks(bit(SIGTERM) | bit(SIGSEGV));
    }
    return verdict();
}
