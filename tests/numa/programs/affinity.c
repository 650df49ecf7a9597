/* The program and its children see the affinity that the user gave, not what the allocator does.
 *   affinity CPUS        CPUS is what taskset and cpusets have left us; it has to be seen everywhere
 *   affinity CPUS child  (how this program starts itself again) */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

static const char *expected, *self;
extern char **environ;

static void as_text(const cpu_set_t *set, char *text) {
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, set)) continue;
        int last = cpu;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET((size_t)last + 1, set)) last++;
        text += sprintf(text, last > cpu ? "%d-%d," : "%d,", cpu, last);
        cpu = last;
    }
    text[-1] = '\0';
}

static void look(const char *where, const char *want) {
    char text[4096] = "-";
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) die("sched_getaffinity: %s", strerror(errno));
    as_text(&set, text);
    expect(!strcmp(text, want), "%s: sched_getaffinity says %s, not %s", where, text, want);
    CPU_ZERO(&set);
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
    as_text(&set, text);
    expect(!strcmp(text, want), "%s: pthread_getaffinity_np says %s, not %s", where, text, want);
}

/* What the kernel itself says of this thread: a child without the allocator would be bound by it. */
static void look_in_kernel(const char *where, const char *want) {
    char line[4096], text[4096] = "";
    FILE *file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %4095s", text);
    fclose(file);
    expect(!strcmp(text, want), "%s: the kernel says %s, not %s", where, text, want);
}

static void wait_for(pid_t child, const char *what) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0) die("%s: %s", what, strerror(errno));
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child reports a failure (status %x)", what, status);
}

/* A child of vfork on a stack of a page, with a page below that it must not reach. */
static int exec_alone(void *command) {
    execve(self, command, environ);
    _exit(99);
}
static pid_t start_on_a_page(char **command) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area, page, PROT_NONE) != 0) die("no stack");
    const pid_t child = clone(exec_alone, area + 2 * page, CLONE_VM | CLONE_VFORK | SIGCHLD, command);
    munmap(area, 2 * page);
    return child;
}

static void start_children(const char *where, const char *want) {
    char what[256];
    fflush(stdout);
    for (int preloaded = 0; preloaded < 2; preloaded++) {
        char *no_environment[] = {NULL}, **environment = preloaded ? environ : no_environment;
        char *command[] = {(char *)self, (char *)want, "child", NULL};
        pid_t child = fork();
        if (child == 0) {
            execve(self, command, environment);
            _exit(99);
        }
        snprintf(what, sizeof what, "%s, fork and exec%s", where, preloaded ? " with the allocator" : " without it");
        wait_for(child, what);
        snprintf(what, sizeof what, "%s, posix_spawn%s", where, preloaded ? " with the allocator" : " without it");
        if (posix_spawn(&child, self, NULL, NULL, command, environment) != 0) die("posix_spawn failed");
        wait_for(child, what);
        child = vfork();
        if (child == 0) {
            execve(self, command, environment);
            _exit(99);
        }
        snprintf(what, sizeof what, "%s, vfork and exec%s", where, preloaded ? " with the allocator" : " without it");
        wait_for(child, what);
    }
    snprintf(what, sizeof what, "%s, exec on a stack of a page", where);
    wait_for(start_on_a_page((char *[]){(char *)self, (char *)want, "child", NULL}), what);
    char line[4096];
    snprintf(line, sizeof line, "%s %s child", self, want);
    int status = system(line);
    expect(status == 0, "%s, system: the child reports a failure (status %x)", where, status);
    pid_t child = fork();
    if (child == 0) {
        failures = 0; /* it answers for itself */
        look(where, want);
        free(malloc(100));
        fflush(stdout);
        _exit(failures != 0);
    }
    snprintf(what, sizeof what, "%s, fork alone", where);
    wait_for(child, what);
}

static void *work(void *argument) {
    int number = (int)(intptr_t)argument;
    char where[64];
    snprintf(where, sizeof where, "thread %d", number);
    look(where, expected);
    free(malloc(1000));
    look(where, expected);
    if (number % 5 == 4) start_children(where, expected);
    return NULL;
}

static void *choose_for_itself(void *argument) {
    int cpu = (int)(intptr_t)argument;
    char want[32];
    snprintf(want, sizeof want, "%d", cpu);
    pin_to_cpu(cpu);
    look("thread with its own choice", want);
    look_in_kernel("thread with its own choice", want);
    start_children("thread with its own choice", want);
    return NULL;
}

int main(int count, char **words) {
    if (count < 2) die("usage: affinity CPUS");
    expected = words[1];
    if (count > 2) { /* a child: no thread has been started, so nothing binds it */
        look("child", expected);
        look_in_kernel("child", expected);
        return verdict();
    }
    static char path[4096];
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) die("cannot find myself");
    self = path;
    enum { THREADS = 10 };
    pthread_t thread[THREADS], chooser;
    look("main, at the start", expected);
    start_children("main, before any thread", expected);
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    look("main, after threads", expected);
    start_children("main, after threads", expected);
    int last = (int)strtol(strrchr(expected, '-') ? strrchr(expected, '-') + 1 : expected, NULL, 10);
    if (pthread_create(&chooser, NULL, choose_for_itself, (void *)(intptr_t)last) != 0) die("cannot start a thread");
    pthread_join(chooser, NULL);
    return verdict();
}
