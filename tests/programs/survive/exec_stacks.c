// Programs that start others from a small stack: the child of a vfork on a stack of a page, a coroutine, a crash
// handler. Below each stack is a page without access, so a deep frame ends the program. Linked with -z now: the first
// call of a function that is bound lazily costs as much stack as all its registers.
#define _GNU_SOURCE
#include "c_check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { small = 4096, large = 1 << 16 };

extern char** environ;
static char* arguments[] = {"true", NULL};

// The end of a stack of `bytes` bytes.
static char* stack_end(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t rounded = (bytes + page - 1) / page * page;
    char* area = mmap(NULL, rounded + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED && mprotect(area, page, PROT_NONE) == 0);
    return area + page + bytes;
}

static int call_execve(void* unused) {
    (void)unused;
    execve("/bin/true", arguments, environ);
    _exit(9);
}
static int call_execvp(void* unused) {
    (void)unused;
    execvp("true", arguments);
    _exit(9);
}
static int call_execl(void* unused) {
    (void)unused;
    execl("/bin/true", "true", (char*)NULL);
    _exit(9);
}

static void expect_success(pid_t child) {
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static ucontext_t caller;
static void call_spawn(void) {
    pid_t child = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
    expect_success(child);
}
static void call_system(void) { CHECK(system("true") == 0); }
static void call_popen(void) { CHECK(pclose(popen("true", "r")) == 0); }

static void in_coroutine(void (*call)(void)) {
    static ucontext_t coroutine;
    CHECK(getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = stack_end(small) - small;
    coroutine.uc_stack.ss_size = small;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, call, 0);
    CHECK(swapcontext(&caller, &coroutine) == 0);
}

// A handler of `signal` on an alternate stack of `bytes` bytes. Returns the end of the stack.
static char* handle_on_stack(size_t bytes, void (*handler)(int)) {
    char* const end = stack_end(bytes);
    const stack_t stack = {.ss_sp = end - bytes, .ss_size = bytes};
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    return end;
}

// What the kernel stores there depends on the processor.
static char* in_handler;
static void note_stack(int signal) {
    char here = (char)signal;
    in_handler = &here;
}
static size_t bytes_of_signal_frame(void) {
    char* const end = handle_on_stack(large, note_stack);
    CHECK(raise(SIGUSR1) == 0);
    return (size_t)(end - in_handler + 15) / 16 * 16;
}

static int (*of_handler)(void*);
static void fork_and_exec(int signal) {
    (void)signal;
    const pid_t child = fork();
    if (child == 0) of_handler(NULL);
    expect_success(child);
}

static void in_crash_handler(int (*call)(void*)) {
    static size_t frame;
    if (frame == 0) frame = bytes_of_signal_frame();
    of_handler = call;
    handle_on_stack(frame + small, fork_and_exec);
    CHECK(raise(SIGUSR1) == 0);
}

// In a thread beside the first: on several nodes it is bound.
static void* work(void* unused) {
    // The first malloc starts the library, and needs more.
    static void* volatile first;
    first = malloc(100);
    free(first);
    CHECK(setenv("PATH", "/usr/bin:/bin", 1) == 0);
    int (*const calls[])(void*) = {call_execve, call_execvp, call_execl};
    for (int i = 0; i < 3; ++i) {
        expect_success(clone(calls[i], stack_end(small), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
        in_crash_handler(calls[i]);
    }
    in_coroutine(call_spawn);
    in_coroutine(call_system);
    in_coroutine(call_popen);
    return unused;
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    puts("programs started from small stacks");
    return 0;
}
