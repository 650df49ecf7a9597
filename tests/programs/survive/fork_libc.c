// Forks while other threads are in functions of libc that hold its locks and allocate: streams, the list of streams,
// the loader, popen, pthread_create. With `names` also the name service, whose configuration changes all the time; exit
// status 77 if the process cannot have a configuration of its own. NUMALLOC_TEST_FORKS sets the number of forks.
#define _GNU_SOURCE
#include "c_check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;
static char lines[] = "numalloc-lines-XXXXXX";
static char names[] = "numalloc-names-XXXXXX";
static const char* library;

// Lines of many lengths, so that getline grows its buffer.
static void write_lines(void) {
    const int file = mkstemp(lines);
    CHECK(file >= 0);
    FILE* out = fdopen(file, "w");
    for (int i = 1; i < 200; ++i) {
        for (int k = 0; k < 37 * i; ++k) fputc('a' + k % 26, out);
        fputc('\n', out);
    }
    CHECK(fclose(out) == 0);
}

static void* read_lines(void* unused) {
    while (!stop) {
        FILE* in = fopen(lines, "r");
        CHECK(in != NULL);
        char* line = NULL;
        size_t room = 0;
        while (getline(&line, &room, in) > 0) {
            free(line);
            line = NULL;
            room = 0;
        }
        free(line);
        fclose(in);
    }
    return unused;
}

static ssize_t sink(void* unused, const char* bytes, size_t n) {
    (void)unused, (void)bytes;
    for (size_t size = 100; size < 2000000; size *= 3) {
        char* p = malloc(size);
        CHECK(p != NULL);
        p[size - 1] = 1;
        free(p);
    }
    return (ssize_t)n;
}
static void* flush_all(void* unused) {
    FILE* out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = sink});
    CHECK(out != NULL);
    while (!stop) {
        fputc('x', out);
        fflush(NULL);
    }
    fclose(out);
    return unused;
}

static void* open_pipes(void* unused) {
    while (!stop) {
        FILE* pipe = popen("echo a line", "r");
        CHECK(pipe != NULL);
        char line[20];
        CHECK(fgets(line, sizeof line, pipe) != NULL && strcmp(line, "a line\n") == 0);
        CHECK(pclose(pipe) == 0);
    }
    return unused;
}

static void* ask_names(void* unused) {
    for (int i = 0; !stop; ++i) {
        const int file = open(names, O_WRONLY | O_TRUNC);
        CHECK(file >= 0);
        CHECK(write(file, i % 2 ? "passwd: files \n" : "passwd: files\n", 14 + i % 2) > 0);
        close(file);
        CHECK(getpwnam("root") != NULL);
    }
    return unused;
}

static void* open_libraries(void* unused) {
    while (!stop) {
        void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != NULL);
        dlclose(handle);
    }
    return unused;
}

static void* allocate_once(void* p) {
    free(p);
    return malloc(100000);
}
static void* run_threads(void* unused) {
    while (!stop) {
        pthread_t thread;
        void* p;
        CHECK(pthread_create(&thread, NULL, allocate_once, malloc(100)) == 0);
        CHECK(pthread_join(thread, &p) == 0 && p != NULL);
        free(p);
    }
    return unused;
}

// Mounts a file of the test over the name service's configuration. false if that is not allowed.
static int own_name_service(void) {
    const int file = mkstemp(names);
    CHECK(file >= 0 && write(file, "passwd: files\n", 14) == 14 && fchmod(file, 0644) == 0);
    close(file);
    if (geteuid() == 0 ? unshare(CLONE_NEWNS) != 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(names, "/etc/nsswitch.conf", NULL, MS_BIND, NULL) == 0;
}

int main(int argc, char** argv) {
    CHECK(argc == 2 || argc == 3);
    library = argv[1];
    const int names_too = argc == 3 && strcmp(argv[2], "names") == 0;
    if (names_too && !own_name_service()) {
        unlink(names);
        puts("no name service of its own");
        return 77;
    }
    write_lines();
    void* (*const work[])(void*) = {read_lines, flush_all, open_pipes, open_libraries, run_threads, ask_names};
    enum { works = sizeof work / sizeof *work };
    pthread_t thread[works];
    const int threads = works - !names_too;
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&thread[i], NULL, work[i], NULL) == 0);
    const char* wanted = getenv("NUMALLOC_TEST_FORKS");
    const int forks = wanted != NULL ? atoi(wanted) : 100;
    for (int i = 0; i < forks; ++i) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            for (size_t size = 10; size < 2000000; size *= 2) {
                void* p = malloc(size);
                CHECK(p != NULL);
                free(p);
            }
            FILE* in = fopen(lines, "r");
            CHECK(in != NULL && fgetc(in) == 'a' && fclose(in) == 0);
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    stop = 1;
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    unlink(lines);
    if (names_too) unlink(names);
    puts("all forks returned");
    return 0;
}
