// Threads that call malloc while fork() waits for a lock they hold: the list of streams, a stream, or the lock of a
// library whose prepare handler runs after ours. malloc must not wait for the end of the fork. The test does not depend
// on time: a malloc that waits until the end deadlocks with the fork.
#define _GNU_SOURCE
#include "c_check.h"
#include "fork_handlers.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { forks = 20, sizes = 40, many = 3000 };

static sem_t closed, held, done;
static FILE* report;
static int waits_in_handler;

// Allocated before the fork, freed while it is in progress.
static char* kept[sizes];
static void* small[many];

static size_t size_of(int i) { return (size_t)1 << (i / 2) | (size_t)(i % 2) << (i / 4); }

static void fill(char* p, size_t n, int i) {
    memset(p, i + 1, n < 64 ? n : 64);
    p[n - 1] = (char)(i + 1);
}
static void check(const char* p, size_t n, int i) {
    for (size_t k = 0; k < n && k < 63; ++k) CHECK(p[k] == (char)(i + 1));
    CHECK(p[n - 1] == (char)(i + 1));
}

static void keep(void) {
    for (int i = 0; i < sizes; ++i) {
        if (kept[i] == NULL) kept[i] = malloc(size_of(i));
        CHECK(kept[i] != NULL);
        fill(kept[i], size_of(i), i);
    }
    for (int i = 0; i < many; ++i)
        if (small[i] == NULL) small[i] = malloc(100);
}

static void* end_at_once(void* p) {
    free(p);
    return malloc(3000);
}

// Every function of malloc's family with every size: most calls find no object in the thread's lists.
static void use_malloc(void) {
    for (int i = 0; i < sizes; ++i) {
        const size_t n = size_of(i);
        check(kept[i], n, i);
        char* p = realloc(kept[i], n + n / 2 + 1);
        CHECK(p != NULL);
        check(p, n, i);
        fill(p, n + n / 2 + 1, i);
        p = realloc(p, n);
        CHECK(p != NULL);
        for (size_t k = 0; k < n && k < 64; ++k) CHECK(p[k] == (char)(i + 1));
        free(p);
        kept[i] = NULL;
        char* zero = calloc(n, 3);
        CHECK(zero != NULL);
        for (size_t k = 0; k < 3 * n && k < 100; ++k) CHECK(zero[k] == 0);
        fill(zero, 3 * n, i);
        for (size_t alignment = sizeof(void*); alignment <= 1 << 22; alignment *= 8) {
            void* aligned = NULL;
            CHECK(posix_memalign(&aligned, alignment, n) == 0 && (size_t)aligned % alignment == 0);
            fill(aligned, n, i);
            check(zero, 3 * n, i);
            free(aligned);
        }
        if (i % 2 == 0) free(zero);
        else kept[i] = realloc(zero, n);
    }
    for (int i = 0; i < many; ++i) {
        free(small[i]);
        small[i] = i % 3 == 0 ? malloc(100) : NULL;
    }
    CHECK(mallinfo2().uordblks > 0);
    CHECK(malloc_info(0, report) == 0);
    malloc_trim(0);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
    pthread_t thread;
    void* result;
    CHECK(pthread_create(&thread, NULL, end_at_once, malloc(70)) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result != NULL);
    free(result);
}

// A thread with a heap that ends while the fork is in progress.
static sem_t may_end;
static void* end_when_told(void* unused) {
    void* p = malloc(50000);
    CHECK(p != NULL);
    free(p);
    sem_post(&held);
    while (sem_wait(&may_end) != 0) {}
    return unused;
}

static pthread_t ending;
static void end_a_thread(void) {
    sem_post(&may_end);
    CHECK(pthread_join(ending, NULL) == 0);
}

// The prepare handler runs after ours, so the gate is closed.
static int forking;
static void in_handler(void) {
    if (!forking) return;
    forking = 0;
    sem_post(&closed);
    if (!waits_in_handler) return;
    end_a_thread();
    while (sem_wait(&done) != 0) {}
}

static void work_while_it_is_closed(void) {
    sem_post(&held);
    while (sem_wait(&closed) != 0) {}
    use_malloc();
    sem_post(&done);
}

static void* work_alone(void* unused) {
    free(malloc(1));
    work_while_it_is_closed();
    return unused;
}

// fflush(NULL) holds the list of streams and this stream.
static ssize_t write_to_cookie(void* unused, const char* bytes, size_t n) {
    (void)unused, (void)bytes;
    work_while_it_is_closed();
    return (ssize_t)n;
}
static void* flush_all(void* stream) {
    fputc('x', stream);
    fflush(NULL);
    return stream;
}

// getline holds a stream; fflush(NULL) holds the list and waits for the stream.
static sem_t reads;
static ssize_t read_from_cookie(void* unused, char* bytes, size_t n) {
    (void)unused;
    CHECK(n > 0);
    sem_post(&reads);
    while (sem_wait(&closed) != 0) {}
    use_malloc();
    sem_post(&done);
    memset(bytes, 'y', n);
    bytes[n - 1] = '\n';
    return (ssize_t)n;
}
static void* read_line(void* stream) {
    char* line = NULL;
    size_t room = 0;
    CHECK(getline(&line, &room, stream) > 0);
    free(line);
    return stream;
}
static void* flush_behind(void* unused) {
    sem_post(&held);
    fflush(NULL);
    return unused;
}

// `still`: no thread changes kept[] and small[] when the child is created.
static void fork_once(int still) {
    forking = 1;
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        for (int i = 0; still && i < sizes; ++i) free(kept[i]);
        for (int i = 0; still && i < many; ++i) free(small[i]);
        for (int i = 0; i < sizes; ++i) {
            void* p = malloc(size_of(i));
            CHECK(p != NULL);
            free(p);
        }
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char** argv) {
    const char* const holds = argc > 1 ? argv[1] : "nothing";
    waits_in_handler = strcmp(holds, "lock") == 0;
    CHECK((report = fopen("/dev/null", "w")) != NULL);
    sem_init(&closed, 0, 0);
    sem_init(&held, 0, 0);
    sem_init(&done, 0, 0);
    sem_init(&reads, 0, 0);
    sem_init(&may_end, 0, 0);
    call_beside(in_handler);
    for (int i = 0; i < forks; ++i) {
        keep();
        pthread_t thread[2];
        FILE* stream = NULL;
        int threads = 1;
        if (waits_in_handler) {
            CHECK(pthread_create(&thread[0], NULL, work_alone, NULL) == 0);
            CHECK(pthread_create(&ending, NULL, end_when_told, NULL) == 0);
            while (sem_wait(&held) != 0) {}
        } else if (strcmp(holds, "list") == 0) {
            stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_to_cookie});
            CHECK(pthread_create(&thread[0], NULL, flush_all, stream) == 0);
        } else if (strcmp(holds, "stream") == 0) {
            stream = fopencookie(NULL, "r", (cookie_io_functions_t){.read = read_from_cookie});
            CHECK(pthread_create(&thread[0], NULL, read_line, stream) == 0);
            while (sem_wait(&reads) != 0) {}
            CHECK(pthread_create(&thread[1], NULL, flush_behind, NULL) == 0);
            threads = 2;
        } else {
            fprintf(stderr, "fork_beside lock|list|stream\n");
            return 2;
        }
        while (sem_wait(&held) != 0) {}
        fork_once(stream == NULL || threads == 1);
        if (!waits_in_handler)
            while (sem_wait(&done) != 0) {}
        for (int k = 0; k < threads; ++k) CHECK(pthread_join(thread[k], NULL) == 0);
        if (stream != NULL) fclose(stream);
        // Frees of objects of either heap.
        for (int k = 0; k < sizes; ++k) free(kept[k]), kept[k] = NULL;
        for (int k = 0; k < many; ++k) free(small[k]), small[k] = NULL;
    }
    puts("every fork returned");
    return 0;
}
