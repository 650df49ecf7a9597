// watch_pages.so, preloaded before an allocator: it knows every object that lives, and which thread allocated it. Where
// their pages lie is looked up each time that a quarter more lives than the time before, and at the end if most of it
// still does; WATCH_PAGES_TO gets what was seen last, as one line of JSON, when the process ends. Local is a page on
// the node where its thread last allocated something. Objects of operator new are not seen: for programs in C.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PARTS = 64,
    ENTRIES = 1 << 15,
    HEADS = 1 << 12,
    THREADS = 4096,
    NODES = 64,
    SEEN = 1 << 21,
    AT_ONCE = 512,
    PAGE = 4096
};
static const size_t first_look = 256 << 10;

typedef struct {
    uintptr_t object;
    size_t bytes;
    uint32_t thread, next;
} Entry;

// A part of the objects, by their addresses. Entry 0 is none.
typedef struct {
    atomic_flag busy;
    uint32_t used, unused, heads[HEADS];
    Entry entries[ENTRIES];
} Part;

static Part parts[PARTS];
static atomic_uint nodes_of[THREADS], threads;
static __thread uint32_t me __attribute__((tls_model("initial-exec")));
static atomic_size_t living, next_look = first_look;
static size_t looked_at;
static atomic_flag looking = ATOMIC_FLAG_INIT;
static atomic_bool full;
static uint64_t seen[SEEN];
static unsigned long local_pages, remote_pages, on_node[NODES];
static pid_t process;

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void *(*real_aligned)(size_t, size_t);
static int (*real_posix)(void **, size_t, size_t);
static void (*real_free)(void *);

// dlsym may ask for memory itself.
static char spare[4096];
static size_t spared;

static void *from_spare(size_t bytes) {
    void *const p = spare + spared;
    spared += (bytes + 15) / 16 * 16;
    if (spared > sizeof spare) abort();
    return p;
}
static int is_spare(const void *p) { return (const char *)p >= spare && (const char *)p < spare + sizeof spare; }

static void find_allocator(void) {
    static __thread int at_it __attribute__((tls_model("initial-exec")));
    if (real_free != NULL || at_it) return;
    at_it = 1;
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    real_calloc = dlsym(RTLD_NEXT, "calloc");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    real_posix = dlsym(RTLD_NEXT, "posix_memalign");
    real_free = dlsym(RTLD_NEXT, "free");
    at_it = 0;
}

static uint64_t scattered(uintptr_t object) { return (object >> 4) * UINT64_C(0x9e3779b97f4a7c15); }
static Part *part_of(uintptr_t object) { return &parts[scattered(object) >> 58]; }
static uint32_t *head_of(Part *part, uintptr_t object) { return &part->heads[scattered(object) >> 40 & (HEADS - 1)]; }

static void take(Part *part) {
    while (atomic_flag_test_and_set_explicit(&part->busy, memory_order_acquire)) sched_yield();
}
static void leave(Part *part) { atomic_flag_clear_explicit(&part->busy, memory_order_release); }

static void look_up(uint64_t *pages, unsigned count) {
    void *addresses[AT_ONCE];
    int status[AT_ONCE];
    for (unsigned i = 0; i < count; i++) addresses[i] = (void *)(pages[i] / THREADS * PAGE);
    if (syscall(SYS_move_pages, 0, (unsigned long)count, addresses, NULL, status, 0) != 0) return;
    for (unsigned i = 0; i < count; i++) {
        if (status[i] < 0 || status[i] >= NODES) continue;  // never touched, or given back
        on_node[status[i]]++;
        if ((unsigned)status[i] == nodes_of[pages[i] % THREADS]) local_pages++;
        else remote_pages++;
    }
}

// A page with objects of several threads counts once for each of them.
static void look(void) {
    if (atomic_flag_test_and_set(&looking)) return;
    const int saved = errno;
    uint64_t pages[AT_ONCE];
    unsigned count = 0, kept = 0;
    memset(seen, 0, sizeof seen);
    memset(on_node, 0, sizeof on_node);
    local_pages = remote_pages = 0;
    for (unsigned p = 0; p < PARTS; p++) {
        take(&parts[p]);
        for (uint32_t i = 1; i <= parts[p].used; i++) {
            const Entry *const entry = &parts[p].entries[i];
            if (entry->object == 0) continue;
            for (uintptr_t page = entry->object / PAGE; page <= (entry->object + entry->bytes - 1) / PAGE; page++) {
                const uint64_t key = page * THREADS + entry->thread;
                uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 43;
                while (seen[at] != 0 && seen[at] != key) at = (at + 1) % SEEN;
                if (seen[at] == key) continue;
                if (++kept > SEEN / 2) {  // what is left is not looked at
                    full = 1;
                    break;
                }
                seen[at] = key;
                pages[count++] = key;
                if (count == AT_ONCE) look_up(pages, count), count = 0;
            }
        }
        leave(&parts[p]);
    }
    look_up(pages, count);
    looked_at = living;
    next_look = looked_at + looked_at / 4;
    errno = saved;
    atomic_flag_clear(&looking);
}

static void *born(void *object, size_t bytes) {
    if (object == NULL || bytes == 0) return object;
    if (me == 0) me = atomic_fetch_add(&threads, 1) % (THREADS - 1) + 1;
    unsigned node = 0;
    if (getcpu(NULL, &node) == 0) nodes_of[me] = node;
    Part *const part = part_of((uintptr_t)object);
    take(part);
    uint32_t at = part->unused;
    if (at != 0) part->unused = part->entries[at].next;
    else if (part->used + 1 < ENTRIES) at = ++part->used;
    if (at != 0) {
        uint32_t *const head = head_of(part, (uintptr_t)object);
        part->entries[at] = (Entry){(uintptr_t)object, bytes, me, *head};
        *head = at;
    } else {
        full = 1;
    }
    leave(part);
    if (at != 0 && atomic_fetch_add(&living, bytes) + bytes > next_look) look();
    return object;
}

static void gone(const void *object) {
    if (object == NULL) return;
    Part *const part = part_of((uintptr_t)object);
    take(part);
    for (uint32_t *link = head_of(part, (uintptr_t)object); *link != 0; link = &part->entries[*link].next) {
        const uint32_t at = *link;
        if (part->entries[at].object != (uintptr_t)object) continue;
        *link = part->entries[at].next;
        living -= part->entries[at].bytes;
        part->entries[at].object = 0;
        part->entries[at].next = part->unused;
        part->unused = at;
        break;
    }
    leave(part);
}

void *malloc(size_t bytes) {
    find_allocator();
    return real_malloc == NULL ? from_spare(bytes) : born(real_malloc(bytes), bytes);
}
void *calloc(size_t count, size_t bytes) {
    find_allocator();
    return real_calloc == NULL ? from_spare(count * bytes) : born(real_calloc(count, bytes), count * bytes);
}
void *realloc(void *object, size_t bytes) {
    find_allocator();
    gone(object);  // before: once it is free, another thread may get it
    return born(real_realloc(object, bytes), bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    find_allocator();
    return born(real_aligned(alignment, bytes), bytes);
}
int posix_memalign(void **object, size_t alignment, size_t bytes) {
    find_allocator();
    const int failed = real_posix(object, alignment, bytes);
    if (!failed) born(*object, bytes);
    return failed;
}
void free(void *object) {
    find_allocator();
    if (is_spare(object)) return;
    gone(object);
    real_free(object);
}

__attribute__((constructor)) static void begin(void) {
    find_allocator();
    process = getpid();
}

__attribute__((destructor)) static void end(void) {
    const char *const to = getenv("WATCH_PAGES_TO");
    if (to == NULL || getpid() != process) return;  // a child has its parent's objects
    if (living >= looked_at / 10 * 9) look();
    FILE *const file = fopen(to, "w");
    if (file == NULL) return;
    Dl_info allocator;
    const char *const name = dladdr((void *)real_malloc, &allocator) ? allocator.dli_fname : "";
    fprintf(file, "{\"local_pages\": %lu, \"remote_pages\": %lu, \"pages_per_node\": [", local_pages, remote_pages);
    unsigned nodes = NODES;
    while (nodes > 1 && on_node[nodes - 1] == 0) nodes--;
    for (unsigned i = 0; i < nodes; i++) fprintf(file, "%s%lu", i == 0 ? "" : ", ", on_node[i]);
    fprintf(file, "], \"allocator\": \"%s\", \"check\": \"%s\"}\n", name, full ? "more than can be watched" : "ok");
    fclose(file);
}
