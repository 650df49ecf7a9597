/* Memory over sets of nodes, by the kernel's word:
 *   sets blocks      interleaved over some nodes, bound to and preferring them, by weights; kept by realloc
 *   sets heaps       heaps over some nodes, and what they leave behind
 *   sets threads     what a thread's malloc uses
 *   sets kinds NODES the nodes without CPUs
 *   sets rehomed     a thread that moves takes its blocks along */
#include "interface.h"

static int nodes[SHOWN_NODES], node_count;

static numalloc_node_set some(int a, int b, int c) {
    numalloc_node_set set = {{0}};
    numalloc_node_set_add(&set, nodes[a]);
    numalloc_node_set_add(&set, nodes[b]);
    numalloc_node_set_add(&set, nodes[c]);
    return set;
}

/* Written, its pages are in the ratio of the weights on nodes a, b, c, to `slack` pages, and on no other. */
static void check_shares(const char *what, char *p, size_t size, const int *on, const int *weights, double slack) {
    size_t got[SHOWN_NODES] = {0};
    memset(p, 1, size);
    long long all = API(numalloc_pages_of_range)(p, size, got, SHOWN_NODES);
    int sum = weights[0] + weights[1] + weights[2];
    long long there = 0;
    for (int i = 0; i < 3; i++) {
        double wanted = (double)all * weights[i] / sum, have = (double)got[nodes[on[i]]];
        there += (long long)got[nodes[on[i]]];
        expect(have >= wanted - slack && have <= wanted + slack, "%s, %zu bytes: %.0f pages on node %d, not %.0f", what,
               size, have, nodes[on[i]], wanted);
    }
    expect(there == all, "%s, %zu bytes: %lld of %lld pages are on other nodes", what, size, all - there, all);
}

static void check_within(const char *what, const char *p, size_t size, const numalloc_node_set *set) {
    size_t got[SHOWN_NODES] = {0};
    API(numalloc_pages_of_range)(p, size, got, SHOWN_NODES);
    for (int n = 0; n < SHOWN_NODES; n++)
        expect(!got[n] || numalloc_node_set_has(set, n), "%s: %zu pages on node %d", what, got[n], n);
}

static int mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; file && (c = getc(file)) != EOF;) lines += c == '\n';
    if (file) fclose(file);
    return lines;
}

/* However long a block becomes, it has a bounded number of stripes, and the nodes' shares. */
static void grown(void) {
    const int on[] = {1, 4, 6}, even[] = {1, 1, 1};
    const unsigned char weights[] = {255, 255, 255};
    numalloc_node_set set = some(1, 4, 6);
    char *p = API(numalloc_malloc_weighted)(1u << 20, &set, weights);
    int before = mappings();
    p = realloc(p, 256u << 20);
    int more = mappings() - before;
    expect(more < 2 * 512, "a block that grew has %d mappings", more);
    check_shares("weighted and grown", p, 24u << 20, on, even, 2 * (256 << 20) / PAGE / 512);
    free(p);
}

static void blocks(void) {
    const int on[] = {1, 4, 6}, even[] = {1, 1, 1}, uneven[] = {3, 1, 4};
    const unsigned char weights[] = {3, 1, 4};
    numalloc_node_set set = some(1, 4, 6);
    for (int round = 0; round < 3; round++)
        for (size_t size = 1u << 20; size <= 16u << 20; size *= 4) {
            char *p = API(numalloc_malloc_on_set)(size, NUMALLOC_INTERLEAVE, &set);
            check_shares("interleaved", p, size, on, even, 2);
            p = realloc(p, 2 * size);
            check_shares("interleaved and resized", p, 2 * size, on, even, 4);
            expect(API(numalloc_node_of)(p) == node_of(p), "numalloc_node_of is wrong");
            p = API(numalloc_realloc_on_node)(p, size, nodes[1]);
            memset(p, 1, size);
            expect(pages_elsewhere(p, size, nodes[1], NULL) == 0,
                   "a spread block that was moved to a node is elsewhere");
            if (round) free(p);
            p = API(numalloc_malloc_weighted)(size, &set, weights);
            double stripe = (double)(size / PAGE * 3 / (512 * 8) + 1) * 8;
            check_shares("weighted", p, size, on, uneven, stripe);
            p = realloc(p, 2 * size);
            check_shares("weighted and resized", p, 2 * size, on, uneven, 2 * stripe);
            if (round) free(p);
            p = API(numalloc_malloc_on_set)(size, NUMALLOC_BIND, &set);
            memset(p, 1, size);
            check_within("bound", p, size, &set);
            if (round) free(p);
            /* What they leave is the nodes' own. */
            for (int i = 0; i < node_count; i++) {
                char *q = API(numalloc_malloc_on_node)(size, nodes[i]);
                memset(q, 1, size);
                expect(pages_elsewhere(q, size, nodes[i], NULL) == 0, "a block on node %d after others is elsewhere",
                       nodes[i]);
                free(q);
            }
        }
    grown();
    /* Small ones, whole: as many on each node, and by weights. */
    int count[SHOWN_NODES] = {0}, heavy[SHOWN_NODES] = {0};
    for (int i = 0; i < 240; i++) {
        char *p = API(numalloc_malloc_on_set)(100000, NUMALLOC_INTERLEAVE, &set);
        memset(p, 1, 100000);
        check_within("a small block", p, 100000, &set);
        count[node_of(p)]++;
    }
    for (int i = 0; i < 240; i++) {
        char *p = API(numalloc_malloc_weighted)(64, &set, weights);
        *p = 1;
        heavy[node_of(p)]++;
        char *q = API(numalloc_malloc_on_set)(64, i % 2 ? NUMALLOC_BIND : NUMALLOC_PREFER, &set);
        *q = 1;
        check_within("a bound small block", q, 64, &set);
    }
    for (int i = 0; i < 3; i++) {
        expect(count[nodes[on[i]]] == 80, "%d of 240 small blocks on node %d", count[nodes[on[i]]], nodes[on[i]]);
        expect(heavy[nodes[on[i]]] == 30 * uneven[i], "%d of 240 weighted blocks on node %d", heavy[nodes[on[i]]],
               nodes[on[i]]);
    }
    /* A set that is full gives nothing more when it is bound, and other nodes' memory when it is not. */
    numalloc_node_set one = {{0}};
    numalloc_node_set_add(&one, nodes[2]);
    char *preferred = API(numalloc_malloc_on_set)(100, NUMALLOC_PREFER, &one);
    *preferred = 1;
    expect(node_of(preferred) == nodes[2], "a preferred node is not taken");
}

static void heaps(void) {
    const int on[] = {0, 3, 5}, even[] = {1, 1, 1};
    numalloc_node_set set = some(0, 3, 5);
    for (int round = 0; round < 3; round++) {
        numalloc_heap *heap = API(numalloc_heap_create_on_set)(NUMALLOC_INTERLEAVE, &set);
        numalloc_heap *bound = API(numalloc_heap_create_on_set)(NUMALLOC_BIND, &set);
        size_t got[SHOWN_NODES] = {0}, in_bound[SHOWN_NODES] = {0};
        for (int i = 0; i < 3000; i++) {
            size_t size = (size_t)(i * 37 % 5000 + 1);
            char *p = API(numalloc_heap_malloc)(heap, size);
            memset(p, 1, size);
            if (i % 5 == 0) free(p);
            memset(API(numalloc_heap_malloc)(bound, size), 1, size);
        }
        char *big = API(numalloc_heap_malloc)(heap, 3u << 20);
        check_shares("a heap's large object", big, 3u << 20, on, even, 2);
        big = realloc(big, 5u << 20);
        check_shares("a heap's resized object", big, 5u << 20, on, even, 2);
        for (size_t at = 0; at < 5u << 20; at += 37 * PAGE)
            expect(API(numalloc_node_of)(big + at) == node_of(big + at), "numalloc_node_of is wrong in a heap");
        long long all = API(numalloc_pages_of_heap)(heap, got, SHOWN_NODES), within = 0;
        for (int i = 0; i < 3; i++) {
            within += (long long)got[nodes[on[i]]];
            expect((double)got[nodes[on[i]]] > (double)all * 0.3, "%zu of %lld pages of a heap on node %d",
                   got[nodes[on[i]]], all, nodes[on[i]]);
        }
        expect(within == all, "%lld of %lld pages of a heap are on other nodes", all - within, all);
        API(numalloc_pages_of_heap)(bound, in_bound, SHOWN_NODES);
        for (int n = 0; n < SHOWN_NODES; n++)
            expect(!in_bound[n] || numalloc_node_set_has(&set, n), "a bound heap has %zu pages on node %d", in_bound[n],
                   n);
        API(numalloc_heap_destroy)(heap);
        API(numalloc_heap_destroy)(bound);
        for (int i = 0; i < node_count; i++) {
            char *q = API(numalloc_malloc_on_node)(6u << 20, nodes[i]);
            memset(q, 1, 6u << 20);
            expect(pages_elsewhere(q, 6u << 20, nodes[i], NULL) == 0, "a block on node %d after heaps is elsewhere",
                   nodes[i]);
            free(q);
        }
    }
}

static void *of_thread(void *unused) {
    (void)unused;
    numalloc_node_set set = some(2, 5, 7);
    for (int policy = NUMALLOC_BIND; policy <= NUMALLOC_PREFER; policy++) {
        expect(API(numalloc_set_thread_policy)((enum numalloc_policy)policy, &set) == 0, "policy: %s", strerror(errno));
        for (size_t size = 64; size < 4u << 20; size *= 5) {
            char *p = malloc(size);
            memset(p, 1, size);
            check_within("a thread's block", p, size, &set);
        }
    }
    expect(API(numalloc_set_thread_policy)(NUMALLOC_INTERLEAVE, &set) == -1 && errno == ENOTSUP,
           "interleaved over some: %s", strerror(errno));
    expect(API(numalloc_set_thread_policy)(NUMALLOC_INTERLEAVE, NULL) == 0, "interleaved: %s", strerror(errno));
    size_t got[SHOWN_NODES] = {0};
    char *p = malloc(1u << 20);
    memset(p, 1, 1u << 20);
    API(numalloc_pages_of_block)(p, got, SHOWN_NODES);
    for (int i = 0; i < node_count; i++) expect(got[nodes[i]] > 0, "no page on node %d", nodes[i]);
    return NULL;
}

static void kinds(uint64_t without_cpus) {
    numalloc_node_set set = {{0}};
    int count = API(numalloc_node_set_of_kind)(NUMALLOC_NODES_MEMORY_ONLY, &set);
    expect(count == __builtin_popcountll(without_cpus), "%d nodes without CPUs: %s", count, strerror(errno));
    for (int n = 0; n < SHOWN_NODES; n++)
        expect(numalloc_node_set_has(&set, n) == (int)(without_cpus >> n & 1), "node %d", n);
    numalloc_node_set others = {{0}}, cpus = {{0}};
    char text[64] = "!";
    API(numalloc_node_set_print)(&set, text + 1, sizeof text - 1);
    expect(API(numalloc_node_set_parse)(text, &others) == 0, "%s: %s", text, strerror(errno));
    API(numalloc_node_set_of_kind)(NUMALLOC_NODES_WITH_CPUS, &cpus);
    expect(!memcmp(&others, &cpus, sizeof others), "%s is not the nodes with CPUs", text);
    char *p = API(numalloc_malloc_on_set)(2u << 20, NUMALLOC_BIND, &set);
    memset(p, 1, 2u << 20);
    check_within("a block in memory without CPUs", p, 2u << 20, &set);
}

static void *other_thread(void *block) {
    *(char **)block = malloc(2u << 20);
    memset(*(char **)block, 1, 2u << 20);
    return NULL;
}
static void rehomed(void) {
    char *mine[3], *others, *resized = malloc(600000);
    pthread_t thread;
    for (int i = 0; i < 3; i++) memset(mine[i] = malloc((size_t)(i + 1) << 20), i, (size_t)(i + 1) << 20);
    memset(resized = realloc(resized, 5u << 20), 9, 5u << 20);
    if (pthread_create(&thread, NULL, other_thread, &others)) die("pthread_create");
    pthread_join(thread, NULL);
    int where = node_of(others);
    for (int k = 0; k < node_count; k++) {
        long long bytes = API(numalloc_rehome_with_blocks)(nodes[k]);
        if (bytes == -1 && errno == ENXIO) {
            expect(cpu_of_node(nodes[k]) < 0, "node %d has CPUs, but is refused", nodes[k]);
            continue;
        }
        expect(bytes == 11 << 20, "%lld bytes moved to node %d: %s", bytes, nodes[k], strerror(errno));
        for (int i = 0; i < 3; i++) {
            expect(pages_elsewhere(mine[i], (size_t)(i + 1) << 20, nodes[k], NULL) == 0, "block %d is not on node %d",
                   i, nodes[k]);
            expect(mine[i][0] == i && mine[i][((size_t)(i + 1) << 20) - 1] == i, "block %d has changed", i);
        }
        expect(pages_elsewhere(resized, 5u << 20, nodes[k], NULL) == 0, "the resized block is not on node %d",
               nodes[k]);
        expect(node_of(others) == where, "another thread's block has moved to node %d", node_of(others));
    }
}

int main(int count, char **words) {
    if (count < 2) die("usage: see the beginning of sets.c");
    node_count = API(numalloc_nodes)(nodes, SHOWN_NODES);
    setvbuf(stdout, map(65536), _IOFBF, 65536);
    pthread_t thread;
    if (!strcmp(words[1], "blocks")) blocks();
    else if (!strcmp(words[1], "heaps")) heaps();
    else if (!strcmp(words[1], "kinds")) kinds(parse_set(words[2]));
    else if (!strcmp(words[1], "rehomed")) rehomed();
    else if (!strcmp(words[1], "threads")) {
        if (pthread_create(&thread, NULL, of_thread, NULL)) die("pthread_create");
        pthread_join(thread, NULL);
    } else die("what is %s?", words[1]);
    return verdict();
}
