/* For programs that check one promise: each broken one is a line that starts with FAIL. */
#ifndef NUMALLOC_TESTS_CHECK_H
#define NUMALLOC_TESTS_CHECK_H

#include "pages.h"

static int failures, checks;

#define expect(condition, ...)                                  \
    do {                                                        \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);       \
        if (!(condition)) {                                     \
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED); \
            if (failures <= 20) {                               \
                printf("FAIL " __VA_ARGS__);                    \
                printf("\n");                                   \
            }                                                   \
        }                                                       \
    } while (0)

static inline int verdict(void) {
    printf("%d checks, %d failed\n", checks, failures);
    if (checks == 0) die("nothing was checked");
    return failures != 0;
}

static inline int cpu_count(void) { return (int)sysconf(_SC_NPROCESSORS_ONLN); }

/* "0-2,5" -> a set of numbers below SHOWN_NODES. */
static inline uint64_t parse_set(const char *text) {
    uint64_t set = 0;
    for (const char *at = text; *at && *at != '\n';) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (end == at || last >= SHOWN_NODES) die("'%s' is not a list of nodes", text);
        for (; first <= last; first++) set |= UINT64_C(1) << first;
        at = *end == ',' ? end + 1 : end;
    }
    return set;
}

static inline uint64_t read_set(const char *path) {
    char line[256];
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) die("cannot read %s", path);
    fclose(file);
    return *line == '\n' ? 0 : parse_set(line);
}

/* The CPUs on which the kernel lets the calling thread run: what numalloc's interposed calls do not show. */
static inline uint64_t kernels_mask(void) {
    char line[4096], text[4096] = "";
    FILE *file = fopen("/proc/thread-self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Cpus_allowed_list: %4095s", text);
    if (file) fclose(file);
    return parse_set(text);
}

/* The first CPU of a node, or -1. */
static inline int cpu_of_node(int node) {
    char path[128], line[256];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    int cpu = fgets(line, sizeof line, file) && *line != '\n' ? (int)strtol(line, NULL, 10) : -1;
    fclose(file);
    return cpu;
}

static inline long free_megabytes(int node) {
    char path[128], line[256];
    long kilobytes = -1;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    FILE *file = fopen(path, "r");
    if (!file) die("cannot read %s", path);
    while (kilobytes < 0 && fgets(line, sizeof line, file)) {
        char *at = strstr(line, "MemFree:");
        if (at) kilobytes = strtol(at + 8, NULL, 10);
    }
    fclose(file);
    return kilobytes >> 10;
}

/* Adds the pages of a block that was written to `on`, and returns how many are not on `node`. */
static inline uint64_t pages_elsewhere(const void *block, size_t size, int node, uint64_t *on) {
    enum { CHUNK = 512 };
    void *pages[CHUNK];
    int nodes[CHUNK];
    uint64_t elsewhere = 0;
    uintptr_t page = (uintptr_t)block & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)block + size;
    while (page < end) {
        size_t count = 0;
        for (; page < end && count < CHUNK; page += PAGE) pages[count++] = (void *)page;
        nodes_of_written(pages, nodes, count);
        for (size_t i = 0; i < count; i++) {
            elsewhere += nodes[i] != node;
            if (on && nodes[i] >= 0 && nodes[i] < SHOWN_NODES) on[nodes[i]]++;
        }
    }
    return elsewhere;
}

#endif
