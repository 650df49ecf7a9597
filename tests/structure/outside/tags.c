// tags CASE: what memory tags must catch, one bug a run, or a program without one (`right`, whose output is whether there are
// tags). A bug that nobody notices ends with status 3.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned tag_of(const void *p) { return (uintptr_t)p >> 56 & 15; }

static void need(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(4);
}

// The compiler knows nothing of what is behind it.
static volatile char *seen(void *p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}

static int same_place(uintptr_t a, uintptr_t b) { return (a ^ b) << 8 == 0; }

// Until the place of a freed object serves again, under another tag.
static void *again_at(void *freed) {
    enum { most = 200000 };
    static void *kept[most];
    for (int i = 0; i < most; ++i) {
        void *p = malloc(64);
        if (same_place((uintptr_t)p, (uintptr_t)freed)) return p;
        kept[i] = p;
        if (i % 2) free(kept[i]);
    }
    need(0, "the place serves again");
    return NULL;
}

// No place has the same tag twice in a row.
static void tags_change(void) {
    enum { places = 4096, rounds = 20000 };
    static uintptr_t last[places];
    unsigned again = 0;
    for (int i = 0; i < rounds; ++i) {
        void *const p = malloc(64);
        uintptr_t *const before = &last[(uintptr_t)p / 16 % places];
        if (same_place(*before, (uintptr_t)p)) {
            ++again;
            need(tag_of(p) == 0 || *before != (uintptr_t)p, "the tag has changed");
        }
        *before = (uintptr_t)p;
        free(p);
    }
    need(again > rounds / 2, "places serve again");
}

enum { threads = 4, rounds = 4000, slots = 64 };
struct slot {
    unsigned char *p;
    size_t bytes;
    unsigned char byte;
};
static struct slot shared[slots];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void check(const struct slot *s) {
    for (size_t i = 0; i < s->bytes; ++i) need(s->p[i] == s->byte, "an object keeps what was written");
}

// The kernel's threads have it from the one that began them; those of qemu-user 7.2 only in part.
static int control;

// All sizes below the library's big objects and some of those; objects change threads.
static void *work(void *number) {
    if (control > 0) prctl(PR_SET_TAGGED_ADDR_CTRL, control, 0, 0, 0);
    struct slot own[slots] = {0};
    unsigned random = 12345 + (unsigned)(uintptr_t)number;
    for (int i = 0; i < rounds; ++i) {
        random = random * 1103515245 + 12345;
        struct slot *s = &own[random >> 16 & (slots - 1)];
        const size_t bytes = (random >> 8) % (i % 100 == 0 ? 2000000 : i % 10 == 0 ? 70000 : 700);
        check(s);
        if (s->p == NULL) {
            s->p = i % 3 == 0 ? calloc(1, bytes) : i % 3 == 1 ? malloc(bytes) : aligned_alloc(64, bytes);
            for (size_t k = 0; i % 3 == 0 && k < bytes; ++k) need(s->p[k] == 0, "calloc's memory is zero");
        } else if (i % 2 == 0) {
            const size_t kept = bytes < s->bytes ? bytes : s->bytes;
            s->p = realloc(s->p, bytes + 1);
            s->bytes = kept;
            check(s);
        } else {
            free(s->p);
            *s = (struct slot){0};
            continue;
        }
        s->bytes = bytes;
        s->byte = (unsigned char)i;
        if (bytes > 0) memset(s->p, s->byte, malloc_usable_size(s->p) < 100000 ? malloc_usable_size(s->p) : bytes);
        pthread_mutex_lock(&lock);
        struct slot *const other = &shared[random >> 20 & (slots - 1)];
        const struct slot old = *other;
        *other = *s;
        *s = old;
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < slots; ++i) free(own[i].p);
    return NULL;
}

static void right(void) {
    pthread_t thread[threads];
    control = prctl(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0);
    for (uintptr_t i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
    // The kernel writes to and reads from objects.
    int ends[2];
    char *const said = malloc(100), *const heard = malloc(100);
    need(pipe(ends) == 0 && write(ends[1], strcpy(said, "hello"), 6) == 6 && read(ends[0], heard, 100) == 6, "a pipe");
    need(strcmp(said, heard) == 0 && strlen(heard) == 5, "what was read");
    const pid_t child = fork();
    if (child == 0) {
        need(strcmp(said, heard) == 0, "what was read, in a child");
        free(said);
        work((void *)77);
        _exit(0);
    }
    int status;
    need(waitpid(child, &status, 0) == child && status == 0, "the child");
    free(said);
    tags_change();
    malloc_trim(0);
    void *const p = malloc(64), *const large = malloc(100000), *const big = malloc(4000000);
    need(tag_of(large) == 0 && tag_of(big) == 0, "large objects have no tag");
    puts(tag_of(p) != 0 ? "tags" : "no tags");
}

int main(int argc, char **argv) {
    const char *const name = argc > 1 ? argv[1] : "";
    char *const p = malloc(64), *const q = calloc(1, 1000);
    const size_t usable = malloc_usable_size(p);
    if (!strcmp(name, "right")) return right(), 0;
    need(tag_of(p) != 0 && tag_of(q) != 0, "objects have tags");
    if (!strcmp(name, "overflow")) seen(p)[usable] = 1;
    if (!strcmp(name, "overread")) (void)seen(p)[usable + 15];
    if (!strcmp(name, "overflow_by_copy")) memset((char *)seen(q), 1, malloc_usable_size(q) + 1);
    if (!strcmp(name, "underflow")) seen(q)[-1] = 1;
    if (!strcmp(name, "overflow_of_32K")) {
        char *const r = malloc(32000);
        seen(r)[malloc_usable_size(r)] = 1;
    }
    if (!strcmp(name, "read_after_free")) free(p), (void)seen(p)[8];
    if (!strcmp(name, "write_after_free")) free(q), seen(q)[999] = 1;
    if (!strcmp(name, "read_after_realloc")) (void)realloc(q, 30000), (void)seen(q)[8];
    if (!strcmp(name, "read_of_another")) free(p), again_at(p), (void)seen(p)[8];
    if (!strcmp(name, "second_free")) free(p), free((char *)seen(p));
    if (!strcmp(name, "stale_free")) free(p), again_at(p), free((char *)seen(p));
    if (!strcmp(name, "stale_realloc")) free(p), again_at(p), (void)realloc((char *)seen(p), 10);
    if (!strcmp(name, "stale_usable_size")) free(p), again_at(p), (void)malloc_usable_size((char *)seen(p));
    if (!strcmp(name, "free_without_tag")) free((char *)seen((void *)((uintptr_t)p << 8 >> 8)));
    if (!strcmp(name, "free_inside")) free((char *)seen(p) + 16);
    return 3;
}
