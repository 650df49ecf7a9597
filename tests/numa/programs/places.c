/* Where memory with a place is:
 *   places on_node             each node's blocks of all sizes, from a thread of another node
 *   places interleaved         page after page on the next node, by the calls for it
 *   places phases serial|all   what main and a thread get by malloc, before and after the thread begins
 *   places only NODES          what main and a thread get by malloc is on NODES
 *   places chosen NODES TEXT   the same by numalloc_set_thread_placement(TEXT), and not for other threads
 *   places kept yes|no         realloc from another node: the block stays, or goes to the caller's
 *   places where               numalloc_pages_of_..., beside what the kernel says
 *   places moved               numalloc_move and numalloc_rehome_thread
 *   places full NODE           by strict binding, until ENOMEM; all on NODE
 *   places allowed NODES       other nodes are ENXIO, and unknown ones EINVAL */
#include "interface.h"

static const size_t sizes[] = {16, 100, 1000, 5000, 40000, 300000, 600000, 3 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int nodes[SHOWN_NODES], node_count;

/* Fresh memory, enough of it that no page was there before; the nodes that have a page of it. */
static uint64_t nodes_of_malloc(void) {
    uint64_t on[SHOWN_NODES] = {0}, set = 0;
    static char *kept[SIZES][32];
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < 32 && k * sizes[i] < (1u << 20); k++) {
            kept[i][k] = malloc(sizes[i]);
            if (!kept[i][k]) die("malloc(%zu)", sizes[i]);
            memset(kept[i][k], 1, sizes[i]);
            pages_elsewhere(kept[i][k], sizes[i], 0, on);
        }
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < 32 && k * sizes[i] < (1u << 20); k++) free(kept[i][k]);
    for (int n = 0; n < SHOWN_NODES; n++)
        if (on[n]) set |= UINT64_C(1) << n;
    return set;
}

static uint64_t in_thread_result;
static int in_thread_node;
static void *in_thread(void *placement) {
    if (placement)
        expect(API(numalloc_set_thread_placement)(placement) == 0, "%s: %s", (char *)placement, strerror(errno));
    in_thread_result = nodes_of_malloc();
    in_thread_node = current_node(); /* after its first malloc, which binds it */
    return NULL;
}
static uint64_t nodes_of_thread(const char *placement) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, (void *)placement)) die("pthread_create");
    pthread_join(thread, NULL);
    return in_thread_result;
}

static uint64_t only(int node) { return UINT64_C(1) << node; }
static uint64_t all_nodes(void) {
    uint64_t set = 0;
    for (int i = 0; i < node_count; i++) set |= only(nodes[i]);
    return set;
}

static void on_node(void) {
    for (int i = 0; i < node_count; i++)
        for (int s = 0; s < SIZES; s++)
            for (int k = 0; k < 12 && k * sizes[s] < (1u << 20); k++) {
                char *p = k % 2 ? API(numalloc_calloc_on_node)(1, sizes[s], nodes[i])
                                : API(numalloc_malloc_on_node)(sizes[s], nodes[i]);
                expect(p, "%zu bytes on node %d: %s", sizes[s], nodes[i], strerror(errno));
                memset(p, 1, sizes[s]);
                expect(pages_elsewhere(p, sizes[s], nodes[i], NULL) == 0, "%zu bytes on node %d are elsewhere",
                       sizes[s], nodes[i]);
                expect(API(numalloc_node_of)(p + sizes[s] / 2) == nodes[i], "numalloc_node_of is wrong");
                p = API(numalloc_realloc_on_node)(p, sizes[s] * 2, nodes[(i + k) % node_count]);
                memset(p, 2, sizes[s] * 2);
                expect(pages_elsewhere(p, sizes[s] * 2, nodes[(i + k) % node_count], NULL) == 0,
                       "realloc is elsewhere");
                if (k % 3) free(p); /* what stays makes the next one fresh */
            }
}

/* A block with a place, resized by a thread of another node, by realloc and by psm_realloc. */
static void check_kept(char *p, size_t size, int node, int wanted, bool by_psm) {
    memset(p, 6, size);
    for (size_t n = size * 3; n <= size * 27; n *= 3) {
        uintptr_t was = (uintptr_t)p;
        p = by_psm ? API(psm_realloc)(p, n) : realloc(p, n);
        if (!by_psm && (uintptr_t)p != was) node = wanted; /* else it has room where it is */
        expect(p && p[0] == 6 && p[n / 3 - 1] == 6, "a block of %zu bytes has changed", n / 3);
        memset(p, 6, n);
        expect(pages_elsewhere(p, n, node, NULL) == 0, "%s to %zu bytes is not on node %d",
               by_psm ? "psm_realloc" : "realloc", n, node);
    }
    expect(by_psm || node == wanted || size > 524288, "no realloc had to move the block");
    free(p);
}

static void kept(bool stays) {
    for (int caller = 0; caller < node_count; caller += 3) {
        pin_to_cpu(cpu_of_node(nodes[caller]));
        free(malloc(100)); /* the thread's heap follows */
        for (int i = 0; i < node_count; i++)
            for (int s = 0; s < SIZES; s++) {
                int wanted = stays ? nodes[i] : nodes[caller];
                for (int by_psm = 0; by_psm < 2; by_psm++)
                    check_kept(API(numalloc_malloc_on_node)(sizes[s] / 4 + 1, nodes[i]), sizes[s] / 4 + 1, nodes[i],
                               wanted, by_psm);
                int home = API(psm_owner_node)(i + 1);
                check_kept(API(psm_alloc)(sizes[s] / 4 + 1, i + 1), sizes[s] / 4 + 1, home,
                           stays ? home : nodes[caller], false);
            }
        numalloc_heap *heap = API(numalloc_heap_create)(nodes[(caller + 1) % node_count]);
        for (int s = 0; s < SIZES; s++)
            check_kept(API(numalloc_heap_malloc)(heap, sizes[s] / 4 + 1), sizes[s] / 4 + 1,
                       nodes[(caller + 1) % node_count], nodes[(caller + 1) % node_count], false);
        API(numalloc_heap_destroy)(heap);
        uint64_t on[SHOWN_NODES] = {0}, places = 0;
        size_t size = 64 * PAGE;
        char *p = realloc(API(numalloc_malloc_interleaved)(100), size);
        memset(p, 1, size);
        pages_elsewhere(p, size, 0, on);
        for (int i = 0; i < node_count; i++) places += on[nodes[i]] > 0;
        expect(places == (stays ? (uint64_t)node_count : 1), "an interleaved block is on %llu nodes",
               (unsigned long long)places);
        free(p);
    }
}

static void check_interleaved(char *p, size_t size) {
    uint64_t on[SHOWN_NODES] = {0};
    memset(p, 1, size);
    pages_elsewhere(p, size, 0, on);
    size_t all = (size + PAGE - 1) / PAGE, least = all, most = 0;
    for (int i = 0; i < node_count; i++) {
        least = on[nodes[i]] < least ? on[nodes[i]] : least;
        most = on[nodes[i]] > most ? on[nodes[i]] : most;
    }
    expect(most - least <= 2, "%zu pages: from %zu to %zu on a node", all, least, most);
    for (size_t page = 1; page < 2 * (size_t)node_count && (page + 1) * PAGE <= size; page++)
        expect(node_of(p + page * PAGE) != node_of(p + (page - 1) * PAGE), "pages %zu and %zu are on one node",
               page - 1, page);
    expect(API(numalloc_node_of)(p) == node_of(p), "numalloc_node_of is wrong");
}

static void interleaved(void) {
    for (int round = 0; round < 3; round++) {
        for (size_t size = 64 * PAGE; size <= 8u << 20; size *= 4) {
            char *p = round == 1 ? API(numalloc_calloc_interleaved)(1, size) : API(numalloc_malloc_interleaved)(size);
            check_interleaved(p, size);
            if (round < 2) free(p);
        }
        char *aligned = API(numalloc_aligned_alloc_interleaved)(1 << 20, 2 << 20);
        check_interleaved(aligned, 2 << 20);
        free(aligned);
    }
    /* Small ones are packed: 16384 of 64 bytes lie on 1 MiB and little more. */
    uint64_t on[SHOWN_NODES] = {0};
    static uintptr_t page[20000];
    size_t different = 0;
    uintptr_t last = 0;
    for (int i = 0; i < 16384; i++) {
        char *p = API(numalloc_malloc_interleaved)(64);
        *p = 1;
        page[i] = (uintptr_t)p / PAGE;
        if (page[i] != last) different++, pages_elsewhere(p, 1, 0, on);
        last = page[i];
    }
    expect(different <= 400, "16384 objects of 64 bytes are spread over %zu pages", different);
    for (int i = 0; i < node_count; i++) expect(on[nodes[i]] > 0, "no small object on node %d", nodes[i]);
}

static void phases(bool all) {
    uint64_t everywhere = all_nodes();
    expect(nodes_of_malloc() == everywhere, "main's memory should be on all nodes");
    uint64_t thread = nodes_of_thread(NULL);
    if (all) expect(thread == everywhere, "the thread's memory is on %#llx", (unsigned long long)thread);
    else expect(thread == only(in_thread_node), "the thread's memory is on %#llx", (unsigned long long)thread);
    uint64_t after = nodes_of_malloc();
    if (all) expect(after == everywhere, "main's memory is on %#llx afterwards", (unsigned long long)after);
    else expect(after == only(current_node()), "main's memory is on %#llx afterwards", (unsigned long long)after);
}

static void check_subset(uint64_t got, uint64_t wanted, const char *whose) {
    expect(got && !(got & ~wanted), "%s memory is on %#llx, not on %#llx", whose, (unsigned long long)got,
           (unsigned long long)wanted);
}

static void only_on(uint64_t wanted) {
    check_subset(nodes_of_malloc(), wanted, "main's");
    for (int i = 0; i < node_count; i++) check_subset(nodes_of_thread(NULL), wanted, "a thread's");
}

static void chosen(uint64_t wanted, const char *text) {
    for (int i = 0; i < node_count; i++) {
        uint64_t got = nodes_of_thread(text);
        if (!strcmp(text, "interleave"))
            expect(got == wanted, "a thread's memory is on %#llx", (unsigned long long)got);
        else check_subset(got, wanted, "a thread's");
        got = nodes_of_thread(NULL);
        expect(got == only(in_thread_node), "another thread's memory is on %#llx", (unsigned long long)got);
    }
    expect(API(numalloc_set_thread_placement)(text) == 0, "main: %s", strerror(errno));
    check_subset(nodes_of_malloc(), wanted, "main's");
    expect(API(numalloc_set_thread_placement)(NULL) == 0, "main: %s", strerror(errno));
    uint64_t got = nodes_of_malloc();
    expect(got == only(current_node()), "main's memory is on %#llx afterwards", (unsigned long long)got);
}

static void check_where(const char *what, long long found, const size_t *got, const uint64_t *wanted) {
    long long all = 0;
    for (int n = 0; n < SHOWN_NODES; n++) {
        all += (long long)wanted[n];
        expect(got[n] == wanted[n], "%s: %zu pages on node %d, not %llu", what, got[n], n,
               (unsigned long long)wanted[n]);
    }
    expect(found == all, "%s: %lld pages, not %lld: %s", what, found, all, strerror(errno));
}

static void where(void) {
    for (int i = 0; i < node_count; i++) {
        size_t got[SHOWN_NODES] = {0}, size = 600 * PAGE;
        uint64_t wanted[SHOWN_NODES] = {0};
        char *p = API(numalloc_malloc_on_node)(size, nodes[i]);
        char *q = API(numalloc_malloc_interleaved)(size);
        memset(p, 1, API(numalloc_good_size)(size));
        memset(q, 1, size);
        pages_elsewhere(p, API(numalloc_good_size)(size), 0, wanted);
        check_where("a block", API(numalloc_pages_of_block)(p, got, SHOWN_NODES), got, wanted);
        expect(got[nodes[i]] == API(numalloc_good_size)(size) / PAGE, "the block is not on node %d", nodes[i]);
        long long first = (long long)got[nodes[i]];
        pages_elsewhere(q, size, 0, wanted);
        check_where("with a range", first + API(numalloc_pages_of_range)(q, size, got, SHOWN_NODES), got, wanted);
        expect(got[nodes[(i + 1) % node_count]] > 0, "no interleaved page on node %d", nodes[(i + 1) % node_count]);
        free(p), free(q);
        numalloc_heap *heap = API(numalloc_heap_create)(nodes[i]);
        size_t in_heap[SHOWN_NODES] = {0};
        for (int k = 0; k < 1000; k++) memset(API(numalloc_heap_malloc)(heap, (size_t)k * 7), 1, (size_t)k * 7);
        memset(API(numalloc_heap_malloc)(heap, size), 1, size);
        long long found = API(numalloc_pages_of_heap)(heap, in_heap, SHOWN_NODES);
        expect(found > 1400 && in_heap[nodes[i]] == (size_t)found, "a heap: %lld pages, %zu on its node", found,
               in_heap[nodes[i]]);
        API(numalloc_heap_destroy)(heap);
    }
}

static _Atomic int stage;
static void *moved_thread(void *unused) {
    (void)unused;
    stage = 1;
    while (stage < 2) nodes_of_malloc();
    for (int i = 0; i < 3; i++) nodes_of_malloc();
    in_thread_result = nodes_of_malloc();
    in_thread_node = current_node(); /* after its first malloc, which binds it */
    return NULL;
}

static void moved(void) {
    for (size_t size = 600000; size <= 8u << 20; size *= 3)
        for (int i = 0; i < node_count; i++) {
            char *p = malloc(size);
            memset(p, 3, size / 2);
            expect(API(numalloc_move)(p, nodes[i]) == 0, "move to %d: %s", nodes[i], strerror(errno));
            memset(p + size / 2, 4, size - size / 2);
            expect(pages_elsewhere(p, size, nodes[i], NULL) == 0, "a moved block is not on node %d", nodes[i]);
            expect(p[0] == 3 && p[size / 2 - 1] == 3 && p[size - 1] == 4, "a moved block has changed");
            expect(API(numalloc_node_of)(p) == nodes[i], "numalloc_node_of says %d", API(numalloc_node_of)(p));
            if (i % 3 == 1) p = realloc(p, size - 65536);
            if (i % 3 == 2) {
                p = API(psm_realloc)(p, size * 2);
                memset(p, 5, size * 2);
                expect(pages_elsewhere(p, size * 2, nodes[i], NULL) == 0, "psm_realloc leaves node %d", nodes[i]);
            }
            free(p);
        }
    /* What was moved has left nothing behind. */
    API(numalloc_rehome_thread)(pthread_self(), nodes[0]);
    uint64_t after = nodes_of_malloc();
    expect(after == only(nodes[0]), "after the moves main's memory is on %#llx", (unsigned long long)after);

    for (int i = 0; i < node_count; i++) {
        expect(API(numalloc_rehome_thread)(pthread_self(), nodes[i]) == 0, "rehome to %d: %s", nodes[i],
               strerror(errno));
        expect(current_node() == nodes[i], "main runs on node %d, not on %d", current_node(), nodes[i]);
        uint64_t got = nodes_of_malloc();
        expect(got == only(nodes[i]), "rehomed to %d, main's memory is on %#llx", nodes[i], (unsigned long long)got);
    }
    for (int i = 0; i < node_count; i += 3) {
        pthread_t thread;
        stage = 0;
        if (pthread_create(&thread, NULL, moved_thread, NULL)) die("pthread_create");
        while (stage == 0) sched_yield();
        expect(API(numalloc_rehome_thread)(thread, nodes[i]) == 0, "rehome: %s", strerror(errno));
        stage = 2;
        pthread_join(thread, NULL);
        expect(in_thread_node == nodes[i], "the thread runs on node %d, not on %d", in_thread_node, nodes[i]);
        expect(in_thread_result == only(nodes[i]), "its memory is on %#llx", (unsigned long long)in_thread_result);
    }
}

static void full(int node) {
    pin_to_cpu(cpu_of_node(nodes[node == nodes[0]]));
    uint64_t on[SHOWN_NODES] = {0};
    size_t megabytes = 0, small = 0;
    char *p;
    while ((p = API(numalloc_malloc_on_node)(1 << 20, node))) {
        memset(p, 1, 1 << 20);
        pages_elsewhere(p, 1 << 20, node, on);
        if (++megabytes > 4096) die("no end");
    }
    expect(errno == ENOMEM, "a full node is %s", strerror(errno));
    while ((p = API(numalloc_malloc_on_node)(64, node)) && small < 1 << 20)
        *p = 1, small++, pages_elsewhere(p, 64, node, on);
    expect(errno == ENOMEM, "a full node is %s for small blocks", strerror(errno));
    for (int n = 0; n < SHOWN_NODES; n++)
        expect(n == node || !on[n], "%llu pages are on node %d", (unsigned long long)on[n], n);
    printf("%zu MiB and %zu small blocks\n", megabytes, small);
    expect(megabytes > 20, "only %zu MiB could be had", megabytes);
}

static void allowed(uint64_t set) {
    for (int n = -1; n < 70; n++) {
        bool exists = n >= 0 && cpu_of_node(n) >= 0;
        void *p = API(numalloc_malloc_on_node)(100, n);
        int refused = p ? 0 : errno;
        if (exists && (set >> n & 1)) expect(p && API(numalloc_node_of)(p) == n, "node %d: %s", n, strerror(refused));
        else expect(refused == (exists ? ENXIO : EINVAL), "node %d: %p, %s", n, p, strerror(refused));
        char text[32];
        snprintf(text, sizeof text, "preferred:%d", n);
        if (n >= 0) {
            int error = API(numalloc_set_thread_placement)(text) ? errno : 0;
            expect(error == (!exists ? EINVAL : set >> n & 1 ? 0 : ENXIO), "%s: %s", text, strerror(error));
        }
        free(p);
    }
}

int main(int count, char **words) {
    if (count < 2) die("usage: see the beginning of places.c");
    node_count = API(numalloc_nodes)(nodes, SHOWN_NODES);
    setvbuf(stdout, map(65536), _IOFBF, 65536);
    if (!strcmp(words[1], "on_node")) on_node();
    else if (!strcmp(words[1], "interleaved")) interleaved();
    else if (!strcmp(words[1], "phases")) phases(!strcmp(words[2], "all"));
    else if (!strcmp(words[1], "only")) only_on(parse_set(words[2]));
    else if (!strcmp(words[1], "chosen")) chosen(parse_set(words[2]), words[3]);
    else if (!strcmp(words[1], "kept")) kept(!strcmp(words[2], "yes"));
    else if (!strcmp(words[1], "where")) where();
    else if (!strcmp(words[1], "moved")) moved();
    else if (!strcmp(words[1], "full")) full((int)number(words[2], "NODE"));
    else if (!strcmp(words[1], "allowed")) allowed(parse_set(words[2]));
    else die("what is %s?", words[1]);
    return verdict();
}
