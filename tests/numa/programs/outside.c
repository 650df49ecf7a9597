/* Masks that another process changes while the program runs: its new threads, its children and the kernel's answers
 * to it follow.
 *   outside taskset              the masks of all threads become CPU 1, as by taskset -a -p
 *   outside cpuset FILE CPUS     CPUS are written to the FILE of the program's cpuset
 *   outside kernel CPUS          (a child) the kernel says that this process may use CPUS
 * A node has two CPUs. With NUMALLOC_BINDING=interleave later threads have to be bound, each to the next node. */
#include "check.h"

#include <dirent.h>
#include <sys/wait.h>

enum { THREADS = 4, LATER = 12 };
static pthread_barrier_t changed, together;
static const char *self;
static int interleaved;
static cpu_set_t expected;

static void parse(const char *text) {
    uint64_t set = parse_set(text);
    CPU_ZERO(&expected);
    for (size_t cpu = 0; cpu < 64; cpu++)
        if (set >> cpu & 1) CPU_SET(cpu, &expected);
}

static void kernels(cpu_set_t *set) {
    const uint64_t cpus = kernels_mask();
    CPU_ZERO(set);
    for (size_t cpu = 0; cpu < 64; cpu++)
        if (cpus >> cpu & 1) CPU_SET(cpu, set);
}

/* `bound`: the kernel's mask is the expected one's part of one node. */
static void look(const char *who, int bound) {
    cpu_set_t set, part;
    CPU_ZERO(&set);
    expect(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_EQUAL(&set, &expected),
           "%s: sched_getaffinity gives %d CPUs, not %d", who, CPU_COUNT(&set), CPU_COUNT(&expected));
    CPU_ZERO(&set);
    expect(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 && CPU_EQUAL(&set, &expected),
           "%s: syscall gives %d CPUs, not %d", who, CPU_COUNT(&set), CPU_COUNT(&expected));
    kernels(&set);
    CPU_AND(&part, &set, &expected);
    expect(CPU_EQUAL(&part, &set) && CPU_COUNT(&set) > 0, "%s: the kernel has CPUs that are not allowed", who);
    if (bound && (interleaved || !CPU_EQUAL(&set, &expected))) {
        size_t first = 0;
        while (!CPU_ISSET(first, &set)) first++;
        cpu_set_t node;
        CPU_ZERO(&node);
        CPU_SET(first & ~1UL, &node);
        CPU_SET(first | 1UL, &node);
        CPU_AND(&node, &node, &expected);
        expect(CPU_EQUAL(&set, &node), "%s: the kernel has %d CPUs, not a node's %d", who, CPU_COUNT(&set),
               CPU_COUNT(&node));
    }
}

static void *work(void *unused) {
    (void)unused;
    free(malloc(1000));
    pthread_barrier_wait(&changed);
    pthread_barrier_wait(&changed);
    look("a thread from before", 0);
    return NULL;
}

static void *later(void *node) {
    free(malloc(1000));
    look("a later thread", 1);
    *(int *)node = current_node();
    pthread_barrier_wait(&together);
    return NULL;
}

static void wait_for(pid_t child, const char *what) {
    int status;
    expect(waitpid(child, &status, 0) == child && status == 0, "%s failed", what);
}

static void set_all_masks(pid_t process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *threads = opendir(path);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(1, &one);
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        if (*entry->d_name != '.' && sched_setaffinity(atoi(entry->d_name), sizeof one, &one) != 0) _exit(1);
    _exit(threads == NULL);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    _exit(!file || fputs(text, file) < 0 || fclose(file) != 0);
}

int main(int count, char **words) {
    int taskset = count == 2 && !strcmp(words[1], "taskset");
    if (!taskset && count < 3) die("usage: outside taskset, or outside cpuset FILE CPUS");
    const char *cpus = taskset ? "1" : words[count - 1];
    parse(cpus);
    interleaved = !strcmp(getenv("NUMALLOC_BINDING") ?: "", "interleave");
    if (!strcmp(words[1], "kernel")) {
        look("a child", 0);
        cpu_set_t set;
        kernels(&set);
        expect(CPU_EQUAL(&set, &expected), "a child: the kernel has %d CPUs, not %d", CPU_COUNT(&set),
               CPU_COUNT(&expected));
        return verdict();
    }
    static char path[4096];
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) die("cannot find myself");
    self = path;
    pthread_barrier_init(&changed, NULL, THREADS + 1);
    pthread_barrier_init(&together, NULL, LATER);
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, work, NULL) != 0) die("cannot start a thread");
    pthread_barrier_wait(&changed);
    // The other process begins when fork() has returned: the library may still be setting the caller's mask before.
    int forked[2];
    if (pipe(forked) != 0) die("pipe: %s", strerror(errno));
    pid_t process = getpid(), other = fork();
    close(forked[1]);
    if (other == 0) {
        char none;
        while (read(forked[0], &none, 1) > 0) continue;
        taskset ? set_all_masks(process) : write_file(words[2], cpus);
    }
    wait_for(other, "the other process");

    pthread_t next[LATER];
    int node[LATER];
    uint64_t nodes = 0, allowed = 0;
    for (int t = 0; t < LATER; t++)
        if (pthread_create(&next[t], NULL, later, &node[t]) != 0) die("cannot start a thread");
    for (int t = 0; t < LATER; t++) {
        pthread_join(next[t], NULL);
        nodes |= UINT64_C(1) << node[t];
    }
    for (size_t cpu = 0; cpu < 64; cpu++)
        if (CPU_ISSET(cpu, &expected)) allowed |= UINT64_C(1) << cpu / 2;
    expect(interleaved ? nodes == allowed : !(nodes & ~allowed), "later threads are on the nodes %#lx, not %#lx",
           (long)nodes, (long)allowed);
    look("main", 0);
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "kernel", cpus, NULL);
        _exit(99);
    }
    wait_for(child, "a child after the change");
    pthread_barrier_wait(&changed);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    return verdict();
}
