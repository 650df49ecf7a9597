/* Whoever starts a thread or a child: that begins with the user's mask, although numalloc binds threads at some slow
 * path of theirs, and libc allocates while it starts others.
 *   starts            all of it
 *   starts mask       (a child) status 0 if the kernel lets it run everywhere */
#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <wordexp.h>

enum { SLOW = 1 << 20, MOST_SLOW = 16, LATER = 150, HOWS = 4 };
static char command[4096];
static const char *const hows[HOWS] = {"system", "popen", "wordexp", "fork"};

/* By the kernel, without malloc. */
static int runs_everywhere(void) {
    char text[8192], wanted[32];
    int file = open("/proc/thread-self/status", O_RDONLY);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    snprintf(wanted, sizeof wanted, "Cpus_allowed_list:\t0-%d\n", cpu_count() - 1);
    return strstr(text, wanted) != NULL;
}

static void use_memory(int slow_paths) {
    for (int i = 0; i < slow_paths; i++) free(malloc(SLOW));
}

static pthread_barrier_t together;

static void *look(void *argument) {
    expect(runs_everywhere(), "a thread after %d slow paths of its creator is bound from the start",
           (int)(intptr_t)argument);
    pthread_barrier_wait(&together);
    return NULL;
}

/* In a child, because the initial thread is bound once. All threads live at once: so libc needs new memory for them,
 * and the thread that starts them is bound at one of these times. */
static void start_threads(int slow_paths) {
    pthread_t thread[LATER];
    pthread_barrier_init(&together, NULL, LATER + 1);
    for (int i = 0; i < LATER; i++) {
        if (pthread_create(&thread[i], NULL, look, (void *)(intptr_t)slow_paths) != 0) die("cannot start a thread");
        if (i == 0) use_memory(slow_paths);
    }
    pthread_barrier_wait(&together);
    for (int i = 0; i < LATER; i++) pthread_join(thread[i], NULL);
}

static void *live(void *unused) {
    free(malloc(100));
    return unused;
}

static int status_of(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

/* The thread itself has no use of memory, and takes no CPU of a node from those that have. */
static void *start_others(void *unused) {
    pthread_t thread;
    for (int i = 0; i < LATER; i++) {
        if (pthread_create(&thread, NULL, live, NULL) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
    }
    expect(runs_everywhere(), "a thread that starts others is bound");
    return unused;
}

/* The first thing that a thread does. */
static void *start_child(void *argument) {
    int how = (int)(intptr_t)argument, status = -1;
    wordexp_t words;
    char substituted[sizeof command + 16];
    switch (how) {
        case 0: status = system(command); break;
        case 1: status = pclose(popen(command, "r")); break;
        case 2:
            snprintf(substituted, sizeof substituted, "$(%s && echo good)", command);
            status = wordexp(substituted, &words, 0) || words.we_wordc != 1 || strcmp(words.we_wordv[0], "good");
            break;
        default: {
            pid_t child = fork();
            if (child == 0) _exit(!runs_everywhere());
            status = status_of(child);
        }
    }
    expect(status == 0, "a child by %s is bound", hows[how]);
    return NULL;
}

int main(int count, char **words) {
    if (count == 2 && !strcmp(words[1], "mask")) return !runs_everywhere();
    if (count != 1) die("usage: starts [mask]");
    ssize_t length = readlink("/proc/self/exe", command, sizeof command - 8);
    if (length < 0) die("cannot find myself");
    strcpy(command + length, " mask");
    for (int slow_paths = 0; slow_paths < MOST_SLOW; slow_paths++) {
        pid_t child = fork();
        if (child == 0) {
            start_threads(slow_paths);
            fflush(stdout);
            _exit(failures != 0);
        }
        expect(status_of(child) == 0, "after %d slow paths", slow_paths);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, start_others, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    for (int how = 0; how < HOWS; how++) {
        if (pthread_create(&thread, NULL, start_child, (void *)(intptr_t)how) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
    }
    return verdict();
}
