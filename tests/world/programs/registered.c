/* A registration cache like those of RDMA libraries: pages stay registered until UCX's memory hooks report that they
   are removed. A registration is a pipe filled by vmsplice(), which pins the pages; tee() reads the pinned pages, as a
   device would, and leaves the pipe full. Counts the sends of wrong pages and the registrations that UCX was not told
   to drop. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

enum { page = 4096, longest = 64 * page, many = 24 };

typedef struct {
    atomic_uintptr_t begin, end;
    atomic_int valid; /* cleared by the handler, in the thread that removes the pages */
    int counted;      /* already counted as stale */
    int pipe[2];
} Registration;

static Registration cache[many];
static int copy[2], memory;
static char sent[longest], present[longest];
static atomic_long heard;
static long sends, wrong, stale;

/* The exit status 77 reports the row as not tried. */
static _Noreturn void unable(const char *what) {
    fprintf(stderr, "%s does not work here\n", what);
    exit(77);
}

static void on_unmapped(ucm_event_type_t type, ucm_event_t *event, void *unused) {
    (void)type, (void)unused;
    uintptr_t begin = (uintptr_t)event->vm_unmapped.address, end = begin + event->vm_unmapped.size;
    heard++;
    for (int i = 0; i < many; i++)
        if (cache[i].begin < end && begin < cache[i].end) cache[i].valid = 0;
}

static void new_pipe(int ends[2]) {
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, longest) < longest)
        unable("a pipe of 64 pages");
}

static void pin(Registration *entry, char *begin, size_t length) {
    static struct iovec range;
    if (entry->begin) close(entry->pipe[0]), close(entry->pipe[1]);
    new_pipe(entry->pipe);
    entry->begin = (uintptr_t)begin;
    entry->end = (uintptr_t)begin + length;
    entry->counted = 0;
    entry->valid = 1;
    range = (struct iovec){begin, length};
    if (vmsplice(entry->pipe[1], &range, 1, 0) != (ssize_t)length) unable("vmsplice()");
}

static Registration *registered(char *begin, size_t length) {
    static int oldest;
    uintptr_t at = (uintptr_t)begin;
    for (int i = 0; i < many; i++)
        if (cache[i].valid && cache[i].begin <= at && at + length <= cache[i].end) return &cache[i];
    Registration *entry = &cache[oldest++ % many];
    pin(entry, begin, length);
    return entry;
}

/* Reads the pinned pages, even if their addresses now map others. */
static void read_pinned(Registration *entry) {
    size_t length = entry->end - entry->begin;
    if (tee(entry->pipe[0], copy[1], length, 0) != (ssize_t)length) unable("tee()");
    if (read(copy[0], sent, length) != (ssize_t)length) unable("reading a full pipe");
}

static void send_pages(char *begin, size_t length) {
    Registration *entry = registered(begin, length);
    read_pinned(entry);
    sends++;
    wrong += memcmp(sent + ((uintptr_t)begin - entry->begin), begin, length) != 0;
}

/* Sends the beginning, the middle and the end of a block: whole pages only, which hold nothing of another block. */
static void send_block(char *block, size_t size) {
    char *begin = block + (-(uintptr_t)block & (page - 1)), *end = block + size;
    end -= (uintptr_t)end & (page - 1);
    size_t length = (size_t)(end - begin) < longest ? (size_t)(end - begin) : longest;
    char *middle = begin + (size_t)(end - begin - length) / 2 / page * page;
    send_pages(begin, length);
    if (middle - begin >= longest) send_pages(middle, length), send_pages(end - length, length);
}

/* A registration is stale if its addresses now map other pages. The hook runs before the pages are removed, so a
   registration that is valid after the comparison was valid during it. There is a second attempt because another thread
   may write to a page between the two reads. */
static int is_stale(Registration *entry) {
    size_t length = entry->end - entry->begin;
    for (int attempt = 0; attempt < 2; attempt++) {
        read_pinned(entry);
        int same =
            pread(memory, present, length, (off_t)entry->begin) == (ssize_t)length && !memcmp(present, sent, length);
        if (same || !entry->valid) return 0;
    }
    return entry->counted = 1;
}

static void look_for_stale(void) {
    for (int i = 0; i < many; i++)
        if (cache[i].valid && !cache[i].counted) stale += is_stale(&cache[i]);
}

static char *filled(char *block, size_t size) {
    static int count;
    if (!block) exit(1);
    return memset(block, 1 + count++ % 251, size);
}

static void *free_it(void *block) {
    free(block);
    return NULL;
}

static void free_elsewhere(char *block) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_it, block)) exit(1);
    pthread_join(thread, NULL);
}

static void one_block(size_t size, int round) {
    char *block = filled(malloc(size), size);
    send_block(block, size);
    size_t other = round % 2 ? size * 3 : size / 3;
    block = realloc(block, other);
    look_for_stale();
    send_block(filled(block, other), other);
    if (round % 3) free(block);
    else free_elsewhere(block);
    look_for_stale();
    block = filled(round % 4 ? calloc(1, size) : aligned_alloc(page, size), size);
    send_block(block, size);
    free(block);
    if (round % 2) malloc_trim(0);
    look_for_stale();
}

static void many_blocks(size_t size) {
    static char *blocks[400];
    for (int i = 0; i < 400; i++) blocks[i] = filled(malloc(size), size);
    for (int i = 0; i < 400; i += 20) send_block(blocks[i], size);
    for (int i = 0; i < 400; i++) free(blocks[i]);
    malloc_trim(0);
    look_for_stale();
}

/* A kernel may copy the pages instead of pinning them. */
static void expect_pinning(void) {
    static char area[page] __attribute__((aligned(4096)));
    memset(area, 1, page);
    Registration *entry = registered(area, page);
    memset(area, 2, page);
    read_pinned(entry);
    if (memcmp(sent, area, page)) unable("pinning by vmsplice()");
}

int main(void) {
    if (sysconf(_SC_PAGESIZE) != page) unable("a page size other than 4 KiB");
    if (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 1, on_unmapped, NULL) != UCS_OK) unable("ucm_set_event_handler()");
    new_pipe(copy);
    if ((memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) < 0) unable("/proc/self/mem");
    expect_pinning();
    for (int round = 0; round < 12; round++) {
        for (size_t size = 96 << 10; size <= 24 << 20; size *= 4) one_block(size, round);
        many_blocks((size_t)(16 << 10) << round % 4);
    }
    for (int i = 0; i < 20; i++) { /* a background thread may remove pages later */
        usleep(50000);
        look_for_stale();
    }
    printf("sends: %ld, of wrong pages: %ld\n", sends, wrong);
    printf("stale registrations: %ld\n", stale);
    printf("removals reported: %s\n", heard ? "yes" : "no");
    return wrong || stale || !heard;
}
