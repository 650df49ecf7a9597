/* Masks that a program sets, or has when it starts a child, where few programs do that.
 *   set_masks handler      a signal handler moves its thread to another node, in the middle of anything
 *   set_masks vfork        a child of vfork binds itself to just the CPUs of its parent's node, and calls exec
 *   set_masks filter       another thread is bound when the program installs a filter, and starts a child afterwards
 *   set_masks is MASK      (how this program starts itself again) */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOVES = 300, KEPT = 64, BY_ID = 2 };
static const char *self;
static volatile sig_atomic_t moves;

static uint64_t cpus_of_node(int node) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    return read_set(path);
}

static uint64_t kernels_mask(void) {
    char line[4096], text[4096] = "";
    FILE *file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %4095s", text);
    if (file) fclose(file);
    return parse_set(text);
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

static void allow_all(void) {
    struct sock_filter filter[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const struct sock_fprog program = {1, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        die("no filters here");
}

int main(int count, char **words) {
    if (count < 2) die("usage: set_masks handler|vfork|filter");
    self = words[0];
    if (!strcmp(words[1], "is")) return kernels_mask() != strtoull(words[2], NULL, 10);
    if (!strcmp(words[1], "handler")) return moved_by_handlers();
    all = kernels_mask();
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread;
    if (pthread_create(&thread, NULL, be_bound, words[1]) != 0) die("cannot start a thread");
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
