/* Masks that a program sets, or has when it starts a child or a thread, where few programs do that.
 *   set_masks handler      a signal handler moves its thread to another node, in the middle of anything
 *   set_masks jump         a signal handler leaves sched_getaffinity() and sched_setaffinity() by siglongjmp()
 *   set_masks vfork        a child of vfork binds itself to just the CPUs of its parent's node, and calls exec
 *   set_masks filter       another thread is bound when the program installs a filter, and starts a child afterwards
 *   set_masks starting     threads have not run yet when their bound creator installs a filter
 *   set_masks reset        another process moves a bound thread to another node, and gives it all CPUs again
 *   set_masks system       a bound thread sets its mask by system("taskset ...")
 *   set_masks probe        another thread fails to install a filter while a bound thread is in system()
 *   set_masks cut          a bound thread has set its mask, and a CPU of its node goes offline
 *   set_masks online LIST  CPUs that were offline at the start of the program come, and a thread's mask has them
 *   set_masks is MASK      (how this program starts itself again) */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOVES = 300, KEPT = 64, BY_ID = 2, STARTING = 64, LARGE = 600000, TOGETHER = 4 }; /* LARGE: always a slow path */
static const char *self;
static volatile sig_atomic_t moves;

static uint64_t cpus_of_node(int node) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    return read_set(path);
}

static uint64_t masks[2];
static void move(int signal) {
    (void)signal;
    const int kept = errno;
    if (sched_setaffinity(0, sizeof *masks, (const cpu_set_t *)&masks[moves % 2]) == 0) moves++;
    errno = kept;
}

/* The next one when the last has been handled. */
static void *send_signals(void *to) {
    for (int seen; (seen = moves) < MOVES;) {
        pthread_kill(*(const pthread_t *)to, SIGUSR1);
        while (moves == seen) sched_yield();
    }
    return NULL;
}

static void *start_and_end(void *unused) {
    (void)unused;
    free(malloc(100));
    return NULL;
}

static int moved_by_handlers(void) {
    const struct sigaction action = {.sa_handler = move, .sa_flags = SA_RESTART};
    const pthread_t self = pthread_self();
    pthread_t sender;
    uintptr_t *kept[KEPT] = {NULL};
    masks[0] = cpus_of_node(0);
    masks[1] = cpus_of_node(1);
    start_and_end(NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&sender, NULL, send_signals, (void *)&self) != 0) die("cannot start a thread");
    for (uintptr_t i = 0; moves < MOVES; ++i) {
        uintptr_t **const p = &kept[i % KEPT];
        if (*p) expect(**p == i - KEPT, "a block was returned twice");
        free(*p);
        *p = malloc(8 + i % 7 * 16);
        **p = i;
        if (i % 1000 != 0) continue;
        pthread_t thread;
        cpu_set_t mask;
        if (pthread_create(&thread, NULL, start_and_end, NULL) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        expect(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity: %s", strerror(errno));
    }
    pthread_join(sender, NULL);
    expect(kernels_mask() == masks[(moves + 1) % 2], "the last mask was not kept");
    return verdict();
}

static sigjmp_buf back;
static volatile sig_atomic_t asks;
static void leave(int signal) {
    (void)signal;
    moves++;
    if (!asks) return;
    asks = 0;
    siglongjmp(back, 1);
}

/* Each one a little later in the calls than the one before. */
static void *send_while_it_asks(void *to) {
    for (int seen; (seen = moves) < MOVES;) {
        while (!asks) sched_yield();
        for (volatile int i = 0; i < seen % 100 * 20; ++i) {}
        pthread_kill(*(const pthread_t *)to, SIGUSR1);
        while (moves == seen) sched_yield();
    }
    return NULL;
}

static int left_by_jumps(void) {
    const struct sigaction action = {.sa_handler = leave};
    const pthread_t self = pthread_self();
    pthread_t sender;
    alarm(300); /* a thread that cannot be started hangs */
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&sender, NULL, send_while_it_asks, (void *)&self) != 0) die("cannot start a thread");
    while (moves < MOVES) {
        if (sigsetjmp(back, 1) != 0) continue;
        asks = 1;
        for (cpu_set_t mask; asks;) {
            sched_getaffinity(0, sizeof mask, &mask);
            sched_setaffinity(0, sizeof mask, &mask);
        }
    }
    pthread_join(sender, NULL);
    pthread_t thread;
    expect(pthread_create(&thread, NULL, start_and_end, NULL) == 0, "cannot start a thread");
    pthread_join(thread, NULL);
    return verdict();
}

/* The result of this program, started by the calling thread, when it is to find the mask. */
static int child_finds(uint64_t mask, int sets_it) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)mask);
    const pid_t child = vfork();
    if (child == 0) {
        if (sets_it && sched_setaffinity(sets_it == BY_ID ? getpid() : 0, sizeof mask, (const cpu_set_t *)&mask) != 0)
            _exit(98);
        cpu_set_t seen;
        CPU_ZERO(&seen);
        if (sets_it && (sched_getaffinity(0, sizeof seen, &seen) != 0 || memcmp(&seen, &mask, sizeof mask) != 0))
            _exit(97);
        execl(self, self, "is", text, (char *)NULL);
        _exit(99);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) die("no child: %s", strerror(errno));
    return status;
}

static uint64_t all;
static pthread_barrier_t barrier;
static void *be_bound(void *word) {
    for (int i = 0; i < 1000; ++i) free(malloc(1000));
    const uint64_t mine = kernels_mask();
    expect(mine != all, "the thread is not bound, so nothing is tried");
    if (!strcmp(word, "vfork")) {
        expect(child_finds(all, 0) == 0, "a child does not have its user's mask");
        expect(child_finds(mine, 1) == 0, "a child does not have the mask that it has set");
        expect(child_finds(mine, BY_ID) == 0, "a child does not have the mask that it has set by its ID");
        expect(child_finds(all, 0) == 0, "a later child has a mask that another one has set");
        return NULL;
    }
    pthread_barrier_wait(&barrier); /* main tries to install a filter */
    pthread_barrier_wait(&barrier);
    expect(kernels_mask() == mine, "a filter that the kernel refused has unbound the thread");
    pthread_barrier_wait(&barrier); /* main installs a filter */
    pthread_barrier_wait(&barrier);
    expect(child_finds(all, 0) == 0, "a child does not have its user's mask after a filter");
    const uint64_t own = kernels_mask();
    cpu_set_t set;
    if (sched_setaffinity(0, sizeof mine, (const cpu_set_t *)&mine) != 0) die("sched_setaffinity: %s", strerror(errno));
    CPU_ZERO(&set);
    expect(sched_getaffinity(0, sizeof set, &set) == 0 && !memcmp(&set, &mine, sizeof mine),
           "after a filter sched_getaffinity does not say what was set");
    expect(own == all, "after a filter the thread is still bound");
    return NULL;
}

static void be_bound_by(const char *who) {
    for (int i = 0; i < 1000; ++i) free(malloc(LARGE));
    expect(kernels_mask() != all, "%s is not bound, so nothing is tried", who);
}

static void set_own(uint64_t mask) {
    if (sched_setaffinity(0, sizeof mask, (const cpu_set_t *)&mask) != 0) die("sched_setaffinity: %s", strerror(errno));
}

static void switch_cpus(uint64_t cpus, const char *to) {
    for (int cpu = 0; cpu < 64; ++cpu) {
        if (!(cpus >> cpu & 1)) continue;
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
        FILE *file = fopen(path, "w");
        if (!file || fputs(to, file) < 0 || fclose(file) != 0) die("cannot write %s to %s", to, path);
    }
}

/* Without numalloc's knowledge: in a child, which knows no thread of its parent. */
static void set_from_outside(pid_t thread, const uint64_t *mask, int count) {
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < count; ++i)
            if (sched_setaffinity(thread, sizeof *mask, (const cpu_set_t *)&mask[i]) != 0) _exit(1);
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) die("the other process failed");
}

static void *be_set_by_system(void *unused) {
    be_bound_by("the thread");
    const uint64_t one = all & ~kernels_mask() & -(all & ~kernels_mask()); /* elsewhere */
    char command[64];
    snprintf(command, sizeof command, "taskset -p %llx %d >/dev/null", (unsigned long long)one, gettid());
    if (system(command) != 0) die("cannot run %s", command);
    for (int round = 0; round < 2; ++round) {
        expect(kernels_mask() == one, "the mask is %#lx, not %#lx", (long)kernels_mask(), (long)one);
        uint64_t seen = 0;
        sched_getaffinity(0, sizeof seen, (cpu_set_t *)&seen);
        expect(seen == one, "sched_getaffinity() says %#lx, not %#lx", (long)seen, (long)one);
        start_and_end(NULL);
    }
    return unused;
}

static int asked[2];

static void ask_for_filter(int signal) {
    (void)signal;
    const int kept = errno;
    expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1, "a filter at NULL was installed");
    if (write(asked[1], "\n", 1) != 1) die("cannot write to a pipe");
    errno = kept;
}

static void *be_probed(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* main handles it */
    if (pipe(asked) != 0) die("cannot make a pipe");
    signal(SIGUSR1, ask_for_filter);
    be_bound_by("the thread");
    char command[64];
    snprintf(command, sizeof command, "kill -USR1 %d; read line <&%d", getpid(), asked[0]);
    if (system(command) != 0) die("cannot run %s", command);
    for (int round = 0; round < 2; ++round) {
        uint64_t seen = 0;
        sched_getaffinity(0, sizeof seen, (cpu_set_t *)&seen);
        expect(seen == all, "sched_getaffinity() says %#lx, not %#lx", (long)seen, (long)all);
        be_bound_by("the thread");
    }
    return unused;
}

static _Atomic pid_t spins;
static int home;

static void *be_reset(void *unused) {
    be_bound_by("the thread");
    const uint64_t mine = kernels_mask();
    home = current_node();
    spins = gettid();
    while (spins != 0) {} /* it runs, so that the kernel moves it at once */
    /* It may move by itself until it is bound, also in the middle of a look. */
    int elsewhere = 0;
    for (int i = 0; i < 100 && kernels_mask() != mine; ++i) {
        const int before = current_node();
        free(malloc(LARGE));
        if (before != home && current_node() == before && kernels_mask() != mine) ++elsewhere;
    }
    expect(elsewhere < 50, "after %d slow paths away from node %d, its memory's, the thread is not bound", elsewhere,
           home);
    return unused;
}

static void reset_spinning(void) {
    while (spins == 0) sched_yield();
    const uint64_t set[] = {cpus_of_node(home == 0), all};
    set_from_outside(spins, set, 2);
    spins = 0;
}

static uint64_t seen_by_thread, kernels_of_thread;
static void *look(void *unused) {
    cpu_set_t seen;
    CPU_ZERO(&seen);
    if (sched_getaffinity(0, sizeof seen, &seen) != 0) die("sched_getaffinity: %s", strerror(errno));
    memcpy(&seen_by_thread, &seen, sizeof seen_by_thread);
    kernels_of_thread = kernels_mask();
    return unused;
}

static void *be_cut(void *unused) {
    set_own(all);
    be_bound_by("the thread");
    const uint64_t mine = kernels_mask(), gone = mine & ~(mine & -mine);
    switch_cpus(gone, "0");
    pthread_t thread;
    if (pthread_create(&thread, NULL, look, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    expect(seen_by_thread == (all & ~gone), "a thread has the CPUs %#lx, not %#lx", (long)seen_by_thread,
           (long)(all & ~gone));
    expect(kernels_of_thread & ~mine, "a thread may run only on its creator's node");
    look(NULL);
    expect(seen_by_thread == (all & ~gone), "its creator has the CPUs %#lx, not %#lx", (long)seen_by_thread,
           (long)(all & ~gone));
    switch_cpus(gone, "1");
    return unused;
}

static int narrowed;
static void *stay_wide(void *came) {
    for (int i = 0; i < 100; ++i) free(malloc(LARGE));
    if (!(kernels_mask() & *(uint64_t *)came)) __atomic_fetch_add(&narrowed, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier); /* all live at once */
    return NULL;
}

static int come_online(const char *list) {
    uint64_t came = parse_set(list);
    free(malloc(1000));
    switch_cpus(came, "1");
    set_own(cpus_of_node(1) | came);
    pthread_barrier_init(&barrier, NULL, TOGETHER);
    pthread_t thread[TOGETHER];
    for (int t = 0; t < TOGETHER; ++t)
        if (pthread_create(&thread[t], NULL, stay_wide, &came) != 0) die("cannot start a thread");
    for (int t = 0; t < TOGETHER; ++t) pthread_join(thread[t], NULL);
    expect(narrowed <= __builtin_popcountll(cpus_of_node(1)), "%d threads may not run on the new CPUs", narrowed);
    return verdict();
}

static int installed;
static void *start_beside_filter(void *unused) {
    while (!__atomic_load_n(&installed, __ATOMIC_ACQUIRE)) sched_yield();
    expect(kernels_mask() == all, "after a filter a thread that was starting may use the CPUs %#lx, not %#lx",
           (long)kernels_mask(), (long)all);
    return unused;
}

static void allow_all(void) {
    struct sock_filter filter[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const struct sock_fprog program = {1, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        die("no filters here");
}

static int filter_beside_starting(void) {
    pthread_t thread[STARTING];
    for (int t = 0; t < STARTING; ++t) {
        if (t == 1) be_bound_by("main"); /* not while it is alone */
        if (pthread_create(&thread[t], NULL, start_beside_filter, NULL) != 0) die("cannot start a thread");
    }
    allow_all();
    __atomic_store_n(&installed, 1, __ATOMIC_RELEASE);
    for (int t = 0; t < STARTING; ++t) pthread_join(thread[t], NULL);
    return verdict();
}

int main(int count, char **words) {
    if (count < 2) die("usage: set_masks handler|jump|vfork|filter|starting|reset|system|probe|cut|online LIST");
    self = words[0];
    if (!strcmp(words[1], "is")) return kernels_mask() != strtoull(words[2], NULL, 10);
    if (!strcmp(words[1], "handler")) return moved_by_handlers();
    if (!strcmp(words[1], "jump")) return left_by_jumps();
    all = kernels_mask();
    if (!strcmp(words[1], "starting")) return filter_beside_starting();
    if (!strcmp(words[1], "online")) return come_online(words[2]);
    void *(*const work)(void *) = !strcmp(words[1], "reset")    ? be_reset
                                  : !strcmp(words[1], "system") ? be_set_by_system
                                  : !strcmp(words[1], "probe")  ? be_probed
                                  : !strcmp(words[1], "cut")    ? be_cut
                                                                : be_bound;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, words[1]) != 0) die("cannot start a thread");
    if (!strcmp(words[1], "reset")) reset_spinning();
    if (!strcmp(words[1], "filter")) {
        pthread_barrier_wait(&barrier);
        expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1, "a filter at NULL was installed");
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        allow_all();
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
    return verdict();
}
