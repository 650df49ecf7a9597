// Children for which libc calls no fork handler, made while other threads are inside malloc: each works with the heap.
//   raw_children syscall|_Fork|clone
//   raw_children pointer     the child has another thread pointer, and so no thread_local object
//   raw_children left        a handler leaves _Fork(), which is async-signal-safe, by siglongjmp()
#define _GNU_SOURCE
#include "c_check.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { children = 60, workers = 3, blocks = 300, rounds = 5 };

static atomic_int stop;
static void* work(void* number) {
    enum { kept = 500 };
    static __thread char* live[kept];
    uint32_t random = (uint32_t)(uintptr_t)number;
    while (!stop) {
        random = random * 1664525 + 1013904223;
        char** const one = &live[(random >> 8) % kept];
        random = random * 1664525 + 1013904223;
        const size_t n = random >> 28 == 0 ? 200000 + (random >> 10) % 900000 : 16 + (random >> 8) % 20000;
        free(*one);
        CHECK((*one = malloc(n)) != NULL);
        **one = 1;
    }
    for (int i = 0; i < kept; ++i) free(live[i]);
    return NULL;
}

static int child(void* parents) {
    alarm(200);
    free(parents);
    static unsigned char* p[blocks];
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < blocks; ++i) {
            const size_t n = i % 10 == 0 ? (size_t)(300000 + i * 1000) : (size_t)(16 + i * 50);
            CHECK((p[i] = malloc(n)) != NULL);
            memset(p[i], i % 256, 16);
        }
        for (int i = 0; i < blocks; ++i) {
            CHECK(p[i][0] == i % 256 && p[i][15] == i % 256);
            free(p[i]);
        }
    }
    return 0;
}

static pid_t make_child(const char* how, void* block) {
    static _Alignas(16) char stack[1 << 18];
    if (strcmp(how, "clone") == 0) return clone(child, stack + sizeof stack, SIGCHLD, block);
    pid_t (*const raw_fork)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork");
    const pid_t pid =
        strcmp(how, "_Fork") == 0 ? raw_fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) _exit(child(block));
    return pid;
}

// thread_local objects lie before the thread pointer, or behind it: there is no memory.
static char* thread_pointer(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char* const area = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
#if defined(__x86_64__)
    CHECK(mprotect(area + page, page, PROT_READ | PROT_WRITE) == 0);
    return area + page;
#else
    return area;
#endif
}
static int do_nothing(void* unused) {
    (void)unused;
    return 0;
}
static int with_another_pointer(void) {
    static _Alignas(16) char stack[1 << 16];
    char* const pointer = thread_pointer();
    void* volatile first = malloc(1);  // starts the library
    free(first);
    const int flags = CLONE_SETTLS | SIGCHLD;
    int status = -1;
    const pid_t by_function = clone(do_nothing, stack + sizeof stack, flags, NULL, NULL, pointer, NULL);
    CHECK(by_function > 0 && waitpid(by_function, &status, 0) == by_function && status == 0);
#if defined(__x86_64__)
    const pid_t by_call = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, pointer);
#else
    const pid_t by_call = (pid_t)syscall(SYS_clone, flags, NULL, NULL, pointer, NULL);
#endif
    if (by_call == 0) syscall(SYS_exit_group, 0);
    CHECK(by_call > 0 && waitpid(by_call, &status, 0) == by_call && status == 0);
    puts("every child was whole");
    return 0;
}

static sigjmp_buf before_fork;
static pthread_t main_thread;
static pid_t main_process;
static volatile sig_atomic_t armed;

static void leave(int signal) {
    (void)signal;
    if (!armed || getpid() != main_process) return;
    armed = 0;
    siglongjmp(before_fork, 1);
}
static void* send_signals(void* unused) {
    while (!stop)
        if (armed) pthread_kill(main_thread, SIGUSR1);
    return unused;
}
static void* fork_and_work(void* unused) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child(NULL));
    int status = -1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    return unused;
}

static int leave_forks(void) {
    main_thread = pthread_self();
    main_process = getpid();
    const struct sigaction action = {.sa_handler = leave};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    // A large heap, so that a fork takes long.
    char* const large = malloc(32 << 20);
    memset(large, 1, 32 << 20);
    pid_t (*const raw_fork)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork");
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
    for (volatile int i = 0; i < 300; ++i) {
        if (sigsetjmp(before_fork, 1) == 0) {
            armed = 1;
            if (raw_fork() == 0) _exit(0);
            armed = 0;
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
    stop = 1;
    CHECK(pthread_join(sender, NULL) == 0);
    while (waitpid(-1, NULL, 0) > 0) {}
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_and_work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    puts("every child was whole");
    return 0;
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    int major = 0, minor = 0;
    CHECK(sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2);
    if ((strcmp(argv[1], "_Fork") == 0 || strcmp(argv[1], "left") == 0) && major == 2 && minor < 34) {
        puts("skipped: glibc before 2.34 has no _Fork()");
        return 77;
    }
    if (strcmp(argv[1], "left") == 0) return leave_forks();
    if (strcmp(argv[1], "pointer") == 0) return with_another_pointer();
    pthread_t thread[workers];
    for (uintptr_t i = 0; i < workers; ++i) CHECK(pthread_create(&thread[i], NULL, work, (void*)i) == 0);
    for (int i = 0; i < children; ++i) {
        void* const block = malloc(40);
        const pid_t pid = make_child(argv[1], block);
        CHECK(pid > 0);
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        free(block);
    }
    stop = 1;
    for (int i = 0; i < workers; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    puts("every child was whole");
    return 0;
}
