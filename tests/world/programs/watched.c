/* watched COMMAND...: runs it on a machine with several nodes and prints what it prints. A line "begin NAME" of it
 * opens a phase, "end" closes it; a line then says how many CPUs the machine had in use, and how many of the pages that
 * it gave away meanwhile lie on the node whose processor asked. The last line has the masks of all processes with one
 * thread that were seen in a phase. A thread's mask may be narrower than its user's, but a process starts with the
 * user's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 500, MOST_MASKS = 16, MASK = 256 };

struct count {
    double time, idle;    /* seconds; of all CPUs together */
    long here, elsewhere; /* pages */
};

static char masks[MOST_MASKS][MASK];
static unsigned mask_count;

static void fail(const char *what) {
    perror(what);
    exit(125);
}

static FILE *opened(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    return file;
}

static struct count counted(void) {
    struct count now = {0};
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    now.time = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
    /* The time without work: it is by the clock, and what was worked by ticks, which an emulated CPU misses. */
    long idle, wait;
    FILE *file = opened("/proc/stat");
    if (fscanf(file, "cpu %*d %*d %*d %ld %ld", &idle, &wait) != 2) fail("/proc/stat");
    fclose(file);
    now.idle = (double)(idle + wait) / (double)sysconf(_SC_CLK_TCK);
    for (int node = 0;; node++) {
        char path[96], line[128];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/numastat", node);
        if (!(file = fopen(path, "r"))) break;
        while (fgets(line, sizeof line, file)) {
            long pages;
            if (sscanf(line, "local_node %ld", &pages) == 1) now.here += pages;
            if (sscanf(line, "other_node %ld", &pages) == 1) now.elsewhere += pages;
        }
        fclose(file);
    }
    return now;
}

static void note_mask(const char *process) {
    char path[300], line[MASK], mask[MASK] = "";
    int threads = 0, is_program = 0;
    snprintf(path, sizeof path, "/proc/%s/status", process);
    FILE *file = fopen(path, "r");
    if (!file) return; /* it has ended */
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "Threads: %d", &threads);
        sscanf(line, "Cpus_allowed_list: %255s", mask);
        is_program |= !strncmp(line, "VmSize:", 7); /* the kernel's own threads have none */
    }
    fclose(file);
    if (!is_program || threads != 1 || !*mask) return;
    for (unsigned m = 0; m < mask_count; m++)
        if (!strcmp(masks[m], mask)) return;
    if (mask_count < MOST_MASKS) strcpy(masks[mask_count++], mask);
}

static void look_at_masks(void) {
    DIR *folder = opendir("/proc");
    if (!folder) fail("/proc");
    for (struct dirent *entry; (entry = readdir(folder));)
        if (*entry->d_name >= '1' && *entry->d_name <= '9') note_mask(entry->d_name);
    closedir(folder);
}

static void print_phase(const char *name, struct count from, struct count to) {
    long here = to.here - from.here, pages = here + to.elsewhere - from.elsewhere;
    printf("%s: %.2f CPUs in use, %.2f %% of %ld new pages on the node that asked\n", name,
           (double)sysconf(_SC_NPROCESSORS_ONLN) - (to.idle - from.idle) / (to.time - from.time),
           pages ? 100.0 * (double)here / (double)pages : 100.0, pages);
}

int main(int count, char **words) {
    if (count < 2) return fputs("usage: watched COMMAND...\n", stderr), 125;
    int ends[2];
    if (pipe(ends) != 0) fail("pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(words[1], words + 1);
        perror(words[1]);
        _exit(127);
    }
    close(ends[1]);
    char text[4096], name[64] = "";
    size_t length = 0;
    struct count begun = {0};
    for (;;) {
        struct pollfd wait = {ends[0], POLLIN, 0};
        if (poll(&wait, 1, *name ? LOOK_MS : -1) == 0) {
            look_at_masks();
            continue;
        }
        ssize_t got = read(ends[0], text + length, sizeof text - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text[length += (size_t)got] = 0;
        char *line = text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (sscanf(line, "begin %63[^\n]", name) == 1) {
                begun = counted();
            } else if (!strcmp(line, "end") && *name) {
                print_phase(name, begun, counted());
                *name = 0;
            } else {
                puts(line);
            }
        }
        length = strlen(line);
        if (length == sizeof text - 1) fail("a line is too long");
        memmove(text, line, length + 1);
    }
    printf("masks of processes with one thread:");
    for (unsigned m = 0; m < mask_count; m++) printf(" %s", masks[m]);
    puts("");
    int status;
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
