// A program that is linked with libjemalloc.so and calls its functions with flags, as redis 8 does. It passes their
// blocks to malloc's relatives, which are a preloaded library's; and the other way round nothing changes.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void* mallocx(size_t size, int flags);
void* rallocx(void* p, size_t size, int flags);
void dallocx(void* p, int flags);
int mallctl(const char* name, void* old, size_t* old_length, void* new, size_t length);

static const int no_cache = 1 << 8;
static const int zero = 0x40;
static int in_arena;

static void* work(void* unused) {
    for (size_t size = 1; size < 5000000; size += size / 3 + 1) {
        char* p = mallocx(size, in_arena | zero);
        if (malloc_usable_size(p) < size) _exit(3);
        memset(p, 1, malloc_usable_size(p));
        p = realloc(p, 2 * size);
        if (malloc_usable_size(p) < 2 * size || p[size - 1] != 1) _exit(4);
        char* q = reallocarray(mallocx(size, no_cache), 3, size);
        free(p);
        q = rallocx(q, 4 * size, no_cache);
        dallocx(q, no_cache);
        free(mallocx(size, 0));
        p = malloc(size);
        memset(p, 2, size);
        free(realloc(p, 2 * size));
    }
    return unused;
}

// Frees take jemalloc's locks, which its fork handlers take too.
static int done;
static void* work_until_done(void* unused) {
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        work(NULL);
        for (int i = 0; i < 10000; ++i) free(mallocx((size_t)(i * 10 + 1), no_cache));
    }
    return unused;
}

int main(void) {
    // Before the program's first malloc.
    free(mallocx(100, 0));
    unsigned arena = 0;
    size_t length = sizeof arena;
    if (mallctl("arenas.create", &arena, &length, NULL, 0) != 0) return puts("no arena"), 1;
    in_arena = (int)(arena + 1) << 20 | no_cache;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work_until_done, NULL);
    work(NULL);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            free(mallocx(300000, no_cache));
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status != 0) return printf("the child ended with 0x%x\n", (unsigned)status), 1;
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("each block came to its own malloc");
    return 0;
}
