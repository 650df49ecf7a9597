/* launcher RESULT_FD SECONDS SAMPLE PRELOAD COMMAND...
 *
 * Runs COMMAND with PRELOAD as its LD_PRELOAD ("-" for none) in a process group of its own, for at most
 * SECONDS, and writes what it used to RESULT_FD as lines of NAME VALUE. It is small and calls no malloc:
 * the kernel counts what a process held before exec towards its peak resident set, so a
 * program started by a Python interpreter would seem to need that interpreter's memory at least.
 *
 * SAMPLE 1 also looks for the most huge pages, ten times a second; that walks the program's page tables,
 * so it is for runs whose time does not count. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_STOP = SIGTRAP | PTRACE_EVENT_EXIT << 8, SAMPLE_NS = 100000000, TICK_NS = 100000000 };

static pid_t child;
static int result_fd;
static int timed_out;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void say(const char *name, double value) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %.9g\n", name, value);
    if (write(result_fd, line, (size_t)length) < 0) _exit(125);
}

/* The whole of a file of /proc, as far as the buffer goes. */
static int read_file(const char *name, char *text, size_t room) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    size_t used = 0;
    for (ssize_t got; used < room - 1 && (got = read(fd, text + used, room - 1 - used)) > 0;) used += (size_t)got;
    close(fd);
    text[used] = '\0';
    return 0;
}

/* A field of smaps_rollup or status in bytes, or -1. */
static double field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at == NULL ? -1 : strtod(at + strlen(name), NULL) * 1024;
}

static double huge_pages(void) {
    static char text[8192];
    return read_file("smaps_rollup", text, sizeof text) == 0 ? field(text, "AnonHugePages:") : -1;
}

/* Looks for the most huge pages, into `most`, until it is killed: a process of its own, because each look
 * waits for whatever holds the program's memory map, and the time limit must not. */
static pid_t start_sampling(volatile double *most) {
    const pid_t sampler = fork();
    if (sampler != 0) return sampler;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (struct timespec pause = {0, SAMPLE_NS};; nanosleep(&pause, NULL)) {
        const double huge = huge_pages();
        if (huge > *most) *most = huge;
    }
}

/* Whether each preloaded library is mapped: what the loader could not preload must not pass for a measurement. */
static int all_mapped(const char *preload) {
    static char maps[1 << 20];
    char libraries[4096];
    if (read_file("maps", maps, sizeof maps) != 0 || strlen(preload) >= sizeof libraries) return 1;
    strcpy(libraries, preload);
    for (char *rest = libraries, *one; (one = strtok_r(rest, ": ", &rest)) != NULL;)
        if (strstr(maps, one) == NULL) return 0;
    return 1;
}

/* The program has let go of what it will let go of, and still has its memory. */
static void inspect(const char *preload) {
    static char text[8192];
    if (read_file("smaps_rollup", text, sizeof text) == 0) {
        say("settled_bytes", field(text, "Rss:"));
        say("huge_bytes_at_exit", field(text, "AnonHugePages:"));
    } else if (read_file("status", text, sizeof text) == 0 && strstr(text, "VmRSS:") != NULL) {
        say("settled_bytes", field(text, "VmRSS:"));
    }
    if (strcmp(preload, "-") != 0) say("preloaded", all_mapped(preload));
}

static void end_group(int signal) {
    (void)signal;
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    timed_out = 2;
}

static void become(char **command, const char *preload, int ready) {
    char go;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    if (strcmp(preload, "-") != 0) setenv("LD_PRELOAD", preload, 1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL);
    if (read(ready, &go, 1) < 0) _exit(125);
    execvp(command[0], command);
    _exit(errno == ENOENT ? 127 : 126);
}

int main(int count, char **words) {
    if (count < 6) {
        fputs("usage: launcher RESULT_FD SECONDS SAMPLE PRELOAD COMMAND...\n", stderr);
        return 125;
    }
    result_fd = atoi(words[1]);
    const double limit = atof(words[2]);
    const int sample = atoi(words[3]);
    const char *preload = words[4];
    fcntl(result_fd, F_SETFD, FD_CLOEXEC);
    unsetenv("LD_PRELOAD");
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, NULL);

    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0 || (child = fork()) < 0) return 125;
    if (child == 0) become(words + 5, preload, ready[0]);
    setpgid(child, child);
    signal(SIGTERM, end_group);
    /* Stops the program once, when it is about to end. Where that is refused, less is known. */
    const int traced = ptrace(PTRACE_SEIZE, child, NULL, (void *)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)) == 0;
    say("pid", child);
    const double start = now();
    if (write(ready[1], "x", 1) < 0) return 125;

    double looking = 0;
    volatile double *most_huge =
        mmap(NULL, sizeof *most_huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (most_huge == MAP_FAILED) return 125;
    const pid_t sampler = sample ? start_sampling(most_huge) : -1;
    struct rusage used;
    for (;;) {
        int status = 0;
        const pid_t got = wait4(child, &status, WNOHANG | __WALL, &used);
        if (got == child && traced && WIFSTOPPED(status)) {
            const double before = now();
            int forward = 0;
            if (status >> 8 == EXIT_STOP) inspect(preload);
            else if (status >> 16 != PTRACE_EVENT_STOP) forward = WSTOPSIG(status);
            ptrace(PTRACE_CONT, child, NULL, (void *)(long)forward);
            looking += now() - before;
        } else if (got == child) {
            say("wall", now() - start - looking);
            say("status", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
            say("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
            break;
        } else {
            struct timespec pause = {0, TICK_NS};
            sigtimedwait(&ended, NULL, &pause);
            if (!timed_out && now() - start > limit) {
                end_group(0);
                timed_out = 1;
            }
        }
    }
    if (sampler > 0) kill(sampler, SIGKILL);
    kill(-child, SIGKILL); /* whatever it has left behind */
    say("timed_out", timed_out == 1);
    say("user", (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec);
    say("system", (double)used.ru_stime.tv_sec + 1e-6 * (double)used.ru_stime.tv_usec);
    say("peak_bytes", (double)used.ru_maxrss * 1024);
    say("minor_faults", (double)used.ru_minflt);
    say("major_faults", (double)used.ru_majflt);
    say("switches", (double)(used.ru_nvcsw + used.ru_nivcsw));
    if (sample) say("huge_bytes", *most_huge);
    return 0;
}
