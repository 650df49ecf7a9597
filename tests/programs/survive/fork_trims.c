// fork() at each system call of another thread's malloc_trim(). The fork waits until malloc_trim() has nothing in hand,
// so the child has all of the free memory. If it did not wait, the child would exist before the call was made.
//
//   heap    large and small blocks are free, in the heap
//   lists   blocks are free in the thread's lists
#define _GNU_SOURCE
#include "c_check.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { blocks = 24, medium = 64, small = 40000, slack = 1 << 19 };

static sem_t asked;
static _Atomic int forked, forks, done;
static _Atomic pid_t forker;
static size_t before;
static int in_lists;
static __thread volatile int trims;  // malloc_trim() is declared not to call back into this file

// Whether the thread that forks sleeps. By system calls, because this runs inside a call of the heap's.
static int waits(void) {
    char text[512], path[64] = "/proc/self/task/";
    size_t at = strlen(path);
    char digits[16];
    int n = 0;
    for (pid_t id = forker; id > 0; id /= 10) digits[n++] = (char)('0' + id % 10);
    while (n > 0) path[at++] = digits[--n];
    strcpy(path + at, "/stat");
    const long file = syscall(SYS_openat, -100, path, 0, 0);
    CHECK(file >= 0);
    const long got = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    CHECK(got > 0);
    text[got] = '\0';
    const char* const name_end = strrchr(text, ')');
    return name_end != NULL && name_end[2] == 'S';
}

static void fork_beside_this_call(void) {
    if (!trims) return;
    const int earlier = forked;
    sem_post(&asked);
    // The forker has left sem_wait() when it raises `forks`.
    while (forks == earlier) {}
    while (forked == earlier && !waits()) {}
}

// The heap finds these instead of libc's.
int madvise(void* p, size_t n, int advice) {
    fork_beside_this_call();
    return (int)syscall(SYS_madvise, p, n, advice);
}
int munmap(void* p, size_t n) {
    fork_beside_this_call();
    return (int)syscall(SYS_munmap, p, n);
}

static void fill_heap(void) {
    static void *block[blocks], *little[small];
    for (int i = 0; i < blocks; ++i) {
        block[i] = malloc((size_t)3 << 20);
        CHECK(block[i] != NULL);
        memset(block[i], 1, (size_t)3 << 20);
    }
    for (int i = 0; i < small; ++i) CHECK((little[i] = malloc(400)) != NULL);
    CHECK(malloc((size_t)3 << 20) != NULL);  // keeps the heap's end where it is
    for (int i = 0; i < blocks; i += 2) free(block[i]);
    for (int i = 0; i < small; ++i) free(little[i]);
}

static void fill_lists(void) {
    static void* block[medium];
    for (int i = 0; i < medium; ++i) {
        CHECK((block[i] = malloc(100000)) != NULL);
        memset(block[i], 1, 100000);
    }
    for (int i = 0; i < medium; ++i) free(block[i]);
}

static void* trim(void* unused) {
    in_lists ? fill_lists() : fill_heap();
    before = mallinfo2().arena;
    trims = 1;
    malloc_trim(0);
    trims = 0;
    done = 1;
    sem_post(&asked);
    return unused;
}

// Whether the child has all free memory: a lost range is not counted, and keeps the heap's end where it is.
static int is_whole(void) {
    if (in_lists) malloc_trim(0);
    const size_t now = mallinfo2().arena;
    const int whole = in_lists ? now < before / 4 : now + slack > before;
    if (!whole) dprintf(2, "%zu of %zu bytes are in the child's heap\n", now, before);
    return whole;
}

static void fork_when_asked(void) {
    forker = (pid_t)syscall(SYS_gettid);
    for (;;) {
        while (sem_wait(&asked) != 0) {}
        if (done) return;
        ++forks;
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            _exit(is_whole() ? 0 : 1);
        }
        ++forked;
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(int argc, char** argv) {
    in_lists = argc > 1 && strcmp(argv[1], "lists") == 0;
    sem_init(&asked, 0, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, trim, NULL) == 0);
    fork_when_asked();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(forks > 0);
    puts("no fork lost memory");
    return 0;
}
