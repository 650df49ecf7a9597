/* In a cgroup with a memory limit: live data that fits, and bursts of other sizes, of which every object but one in
 * SURVIVORS is freed. What is free has to go back before the limit is reached, or the kernel kills.
 *   limited LIVE BURST ROUNDS [LIMIT]     MiB; LIMIT is the cgroup's, and numalloc has to have found it */
#include "interface.h"

enum { OBJECT = 1000, SMALLEST = 64, SIZES = 10, SURVIVORS = 1000 };

static uint32_t state = 1;
static uint32_t next(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static char *written(size_t bytes) {
    char *object = malloc(bytes);
    if (!object) die("malloc fails");
    return memset(object, 1, bytes);
}

int main(int count, char **words) {
    if (count != 4 && count != 5) die("usage: limited LIVE BURST ROUNDS [LIMIT]");
    size_t objects = ((size_t)atoi(words[1]) << 20) / OBJECT, bytes = (size_t)atoi(words[2]) << 20;
    char **live = malloc(objects * sizeof *live), **burst = malloc(bytes / SMALLEST * sizeof *burst);
    for (size_t i = 0; i < objects; i++) live[i] = written(OBJECT);
    for (int round = 0; round < atoi(words[3]); round++) {
        size_t size = (size_t)SMALLEST << round % SIZES, many = 0;
        for (size_t got = 0; got + size * 5 / 4 <= bytes; many++) {
            size_t n = size + next() % (size / 4);
            burst[many] = written(n);
            got += n;
        }
        for (size_t i = 0; i < many; i++) {
            if (next() % SURVIVORS == 0) {
                char **place = &live[next() % objects], *before = *place;
                *place = burst[i];
                burst[i] = before;
            }
            free(burst[i]);
        }
        expect(live[0][0] == 1, "an object has changed in round %d", round);
    }
    if (count == 4) return verdict(); /* under any allocator */
    struct numalloc_process_statistics now;
    API(numalloc_statistics_of_process)(&now, sizeof now);
    expect(now.memory_limit == (uint64_t)atoi(words[4]) << 20, "the limit is %ld MiB", (long)(now.memory_limit >> 20));
    expect(now.limit_returns > 0, "nothing was returned for the limit");
    return verdict();
}
