// fork() at each system call of another thread's malloc_trim(). The fork waits until malloc_trim() has nothing in hand,
// so the child has all of the free memory. If it did not wait, the child would exist before the call was made.
//
//   heap    large blocks and small ones are free, in the heap
//   bags    so are most small blocks, but few whole bags
//   lists   blocks are free in the thread's lists
#define _GNU_SOURCE
#include "c_check.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { blocks = 24, medium = 64, small = 40000, slack = 1 << 19, bag = 32768, kept = 512 };

static sem_t asked;
static _Atomic int forked, forks, done;
static _Atomic pid_t forker;
static size_t before, in_use_before;
static enum { in_heap, in_bags, in_lists } are_free;
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

static void fill_bags(void) {
    static void* little[small];
    for (int i = 0; i < small; ++i) CHECK((little[i] = malloc(400)) != NULL);
    for (int i = 0; i < small; ++i)
        if (are_free != in_bags || i % kept != 0) free(little[i]);
}

static void fill_heap(void) {
    static void* block[blocks];
    for (int i = 0; i < blocks; ++i) {
        block[i] = malloc((size_t)3 << 20);
        CHECK(block[i] != NULL);
        memset(block[i], 1, (size_t)3 << 20);
    }
    fill_bags();
    CHECK(malloc((size_t)3 << 20) != NULL);  // keeps the heap's end where it is
    for (int i = 0; i < blocks; i += 2) free(block[i]);
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
    if (are_free == in_heap) fill_heap();
    if (are_free == in_bags) fill_bags();
    if (are_free == in_lists) fill_lists();
    before = mallinfo2().arena;
    in_use_before = mallinfo2().uordblks;
    trims = 1;
    malloc_trim(0);
    trims = 0;
    done = 1;
    sem_post(&asked);
    return unused;
}

// Whether the child has all free memory: a lost range is not counted, and keeps the heap's end where it is; the objects
// of a lost bag count as in use.
static int is_whole(void) {
    if (are_free == in_lists) malloc_trim(0);
    const struct mallinfo2 now = mallinfo2();
    const int whole = are_free == in_lists  ? now.arena < before / 4
                      : are_free == in_bags ? now.uordblks < in_use_before + bag / 2
                                            : now.arena + slack > before;
    if (!whole)
        dprintf(2, "heap: %zu bytes, was %zu; in use: %zu, was %zu\n", now.arena, before, now.uordblks, in_use_before);
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
        if (child == 0) _exit(is_whole() ? 0 : 1);
        ++forked;
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    are_free = strcmp(what, "lists") == 0 ? in_lists : strcmp(what, "bags") == 0 ? in_bags : in_heap;
    sem_init(&asked, 0, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, trim, NULL) == 0);
    fork_when_asked();
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(forks > 0);
    puts("no fork lost memory");
    return 0;
}
