/* The node of a page by way of its page frame. While AutoNUMA waits for the next access to a page,
 * move_pages (Linux 6.1) answers as if it did not exist; touching it to find out might move it. The
 * frame's number is in /proc/self/pagemap, for root only; the nodes' frames are in /proc/zoneinfo.
 * Nothing here calls malloc. */
#ifndef NUMALLOC_LAB_FRAMES_H
#define NUMALLOC_LAB_FRAMES_H

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct frames {
    uint64_t first, end;
    int node;
};

static struct frames frames_of_zones[1024];
static size_t zones;
static int pagemap = -1;

static inline void note_zone(const char *line, int *node, uint64_t *spanned) {
    unsigned long value;
    if (sscanf(line, "Node %d,", node) == 1) return;
    if (sscanf(line, " spanned %lu", &value) == 1) *spanned = value;
    if (sscanf(line, " start_pfn: %lu", &value) == 1 && *spanned &&
        zones < sizeof frames_of_zones / sizeof *frames_of_zones)
        frames_of_zones[zones++] = (struct frames){value, value + *spanned, *node};
}

static inline void read_zones(void) {
    enum { MOST = 16 << 20 };
    int node = -1, file = open("/proc/zoneinfo", O_RDONLY | O_CLOEXEC);
    char *text = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file < 0 || text == MAP_FAILED) return;
    size_t length = 0;
    for (ssize_t got; length < MOST - 1 && (got = read(file, text + length, MOST - 1 - length)) > 0;)
        length += (size_t)got;
    uint64_t spanned = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        note_zone(line, &node, &spanned);
    }
    munmap(text, MOST);
    close(file);
    pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

/* The node of a page, or -1 where it has no frame or we may not know. */
static inline int node_by_frame(const void *page) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t entry, frame;
    pthread_once(&once, read_zones);
    if (pread(pagemap, &entry, sizeof entry,
              (off_t)((uintptr_t)page / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof entry)) != sizeof entry)
        return -1;
    frame = entry & ((UINT64_C(1) << 55) - 1);
    if (!(entry >> 63) || !frame) return -1;
    for (size_t i = 0; i < zones; i++)
        if (frame >= frames_of_zones[i].first && frame < frames_of_zones[i].end) return frames_of_zones[i].node;
    return -1;
}

#endif
