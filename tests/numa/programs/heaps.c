/* Heaps of the program's own: whoever asks and whoever frees, their objects lie on the heap's node, and no
 * page is shared with another node's heap. */
#include "check.h"

#include <dlfcn.h>

enum { SIZES = 20 };
static void *(*heap_create)(int), *(*heap_malloc)(void *, size_t);
static void (*heap_destroy)(void *);
static char *blocks[SHOWN_NODES][SIZES];

static size_t size_of(int i) { return (size_t)16 << i; }

/* Half of each heap's objects are freed by another thread than the one that made them. */
static void *free_half(void *unused) {
    (void)unused;
    for (int node = 0; node < SHOWN_NODES; node++)
        for (int i = 0; i < SIZES; i += 2) {
            free(blocks[node][i]);
            blocks[node][i] = NULL;
        }
    return NULL;
}

int main(void) {
    uint64_t nodes = read_set("/sys/devices/system/node/has_memory");
    void *heaps[SHOWN_NODES] = {NULL};
    heap_create = (void *(*)(int))dlsym(RTLD_DEFAULT, "numalloc_heap_create");
    heap_malloc = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, "numalloc_heap_malloc");
    heap_destroy = (void (*)(void *))dlsym(RTLD_DEFAULT, "numalloc_heap_destroy");
    if (!heap_create || !heap_malloc || !heap_destroy) die("needs libnumalloc");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++)
            for (int node = 0; node < SHOWN_NODES; node++) {
                if (!(nodes >> node & 1)) continue;
                if (!heaps[node]) heaps[node] = heap_create(node);
                expect(heaps[node], "no heap on node %d", node);
                if (!heaps[node] || blocks[node][i]) continue;
                blocks[node][i] = heap_malloc(heaps[node], size_of(i));
                expect(blocks[node][i], "no %zu bytes on node %d", size_of(i), node);
                if (!blocks[node][i]) continue;
                memset(blocks[node][i], 'x', size_of(i));
                uint64_t elsewhere = pages_elsewhere(blocks[node][i], size_of(i), node, NULL);
                expect(elsewhere == 0, "%zu bytes of the heap of node %d: %llu pages elsewhere", size_of(i), node,
                       (unsigned long long)elsewhere);
            }
        pthread_t thread;
        if (pthread_create(&thread, NULL, free_half, NULL) != 0) die("cannot start a thread");
        pthread_join(thread, NULL);
        for (int node = 0; node < SHOWN_NODES && round == 1; node++) {
            if (heaps[node]) heap_destroy(heaps[node]);
            heaps[node] = NULL;
            memset(blocks[node], 0, sizeof blocks[node]);
        }
    }
    return verdict();
}
