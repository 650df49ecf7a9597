// A library that replaces the exec family, the calls of affinity and prctl, as libraries do that record or redirect
// what a program executes. For each exec it writes a dot; the others it counts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

enum { most_arguments = 10 };

int own_calls_seen;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void note_exec(void) { (void)!write(1, ".", 1); }

int execve(const char* path, char* const argv[], char* const env[]) {
    return note_exec(), NEXT(execve)(path, argv, env);
}
int execv(const char* path, char* const argv[]) { return note_exec(), NEXT(execv)(path, argv); }
int execvp(const char* file, char* const argv[]) { return note_exec(), NEXT(execvp)(file, argv); }
int execvpe(const char* file, char* const argv[], char* const env[]) {
    return note_exec(), NEXT(execvpe)(file, argv, env);
}
int fexecve(int fd, char* const argv[], char* const env[]) { return note_exec(), NEXT(fexecve)(fd, argv, env); }

static char* const* collect(char* argv[most_arguments], const char* first, va_list rest) {
    size_t n = 0;
    for (const char* argument = first; argument != NULL && n < most_arguments - 2; argument = va_arg(rest, char*))
        argv[n++] = (char*)argument;
    argv[n] = NULL;
    return argv;
}

int execl(const char* path, const char* first, ...) {
    char* argv[most_arguments];
    va_list rest;
    va_start(rest, first);
    collect(argv, first, rest);
    va_end(rest);
    return execv(path, argv);
}
int execlp(const char* file, const char* first, ...) {
    char* argv[most_arguments];
    va_list rest;
    va_start(rest, first);
    collect(argv, first, rest);
    va_end(rest);
    return execvp(file, argv);
}
int execle(const char* path, const char* first, ...) {
    char* argv[most_arguments];
    va_list rest;
    va_start(rest, first);
    collect(argv, first, rest);
    char* const* env = va_arg(rest, char* const*);
    va_end(rest);
    return execve(path, argv, env);
}

int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t* mask) {
    ++own_calls_seen;
    return NEXT(sched_getaffinity)(tid, bytes, mask);
}
int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t* mask) {
    ++own_calls_seen;
    return NEXT(sched_setaffinity)(tid, bytes, mask);
}
int prctl(int option, ...) {
    long a[4];
    va_list rest;
    va_start(rest, option);
    for (int i = 0; i < 4; ++i) a[i] = va_arg(rest, long);
    va_end(rest);
    ++own_calls_seen;
    return ((int (*)(int, ...))dlsym(RTLD_NEXT, "prctl"))(option, a[0], a[1], a[2], a[3]);
}
