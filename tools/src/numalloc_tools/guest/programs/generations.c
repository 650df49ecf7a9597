/* Thread generations: threads that end leave memory to threads of other nodes.
 *
 *   generations THREADS GENERATIONS BYTES SMALLEST LARGEST free|pinned
 *
 * In each generation T threads start. Each fills BYTES with objects of mixed sizes, and half-way frees
 * what a thread of the generation before, which ran on another node, has left; asks where the pages
 * are that it wrote; frees every second object; leaves the others; and ends. The first generation, whose
 * memory is all fresh, is not counted. Prints one line of JSON. */
#include "pages.h"

struct object {
    char *memory;
    size_t size;
};

struct legacy {
    struct object *objects;
    size_t count;
};

struct worker {
    pthread_t thread;
    int number;
    uint64_t random;
    struct object *objects;
    struct written *written;
    struct tally tally;
    uint64_t damaged;
};

static struct worker *workers;
static struct legacy *legacies;
static int *old_node, *new_node, *heir_of, threads, generation;
static size_t bytes, smallest, largest, most_objects;
static bool pinned;
static uint64_t crossed;
static pthread_barrier_t barrier;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* As many objects between 1 and 2 KiB as between 2 and 4 KiB, as real programs roughly have it. */
static size_t mixed_size(uint64_t *state) {
    int octaves = 0;
    while (smallest << (octaves + 1) <= largest) octaves++;
    size_t low = smallest << (octaves ? next_random(state) % (uint64_t)octaves : 0);
    size_t size = low + next_random(state) % low;
    return size < largest ? size : largest;
}

/* heir_of[t]: whose legacy t frees: one of another node, one for each thread. Threads and legacies
 * both in order of their nodes, one of them turned by half: with threads spread evenly no two meet
 * that were on the same node. */
static void choose_legacies(void) {
    int threads_by_node[threads], legacies_by_node[threads], used_threads = 0, used_legacies = 0;
    for (int node = 0; node < SHOWN_NODES; node++)
        for (int t = 0; t < threads; t++) {
            if (new_node[t] % SHOWN_NODES == node) threads_by_node[used_threads++] = t;
            if (old_node[t] % SHOWN_NODES == node) legacies_by_node[used_legacies++] = t;
        }
    for (int i = 0; i < threads; i++) heir_of[threads_by_node[i]] = legacies_by_node[(i + threads / 2) % threads];
    if (generation > 0)
        for (int t = 0; t < threads; t++) crossed += new_node[t] != old_node[heir_of[t]];
}

struct filling {
    size_t bytes, count, noted;
};

static void fill(struct worker *me, struct filling *filling, size_t until) {
    while (filling->bytes < until && filling->count < most_objects) {
        struct object *object = &me->objects[filling->count++];
        object->size = mixed_size(&me->random);
        object->memory = malloc(object->size);
        if (!object->memory) die("malloc(%zu) failed", object->size);
        int node = current_node();
        memset(object->memory, 'a' + me->number % 26, object->size);
        filling->noted = note_pages(me->written, filling->noted, object->memory, object->size, node);
        filling->bytes += object->size;
    }
}

static void free_legacy(struct worker *me) {
    int dead = heir_of[me->number];
    char mark = (char)('a' + dead % 26);
    for (size_t i = 0; i < legacies[dead].count; i++) {
        struct object *object = &legacies[dead].objects[i];
        me->damaged += object->memory[0] != mark || object->memory[object->size - 1] != mark;
        free(object->memory);
    }
}

static void *live(void *argument) {
    struct worker *me = argument;
    if (pinned) {
        /* Another node than the thread of this number had before: the CPUs of a node are neighbours. */
        int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
        pin_to_cpu((me->number + generation * (cpus / 4 + 1)) % cpus);
    }
    new_node[me->number] = current_node();
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) choose_legacies();
    pthread_barrier_wait(&barrier);

    struct filling filling = {0};
    fill(me, &filling, bytes / 2);
    pthread_barrier_wait(&barrier); /* nobody's legacy is gone before all have need of memory */
    free_legacy(me);
    fill(me, &filling, bytes);
    if (generation > 0) count_pages(&me->tally, me->written, filling.noted);

    pthread_barrier_wait(&barrier); /* all legacies have been read */
    struct legacy *mine = &legacies[me->number];
    mine->count = 0;
    for (size_t i = 0; i < filling.count; i++) {
        if (i % 2) free(me->objects[i].memory);
        else mine->objects[mine->count++] = me->objects[i];
    }
    old_node[me->number] = current_node();
    return NULL;
}

int main(int count, char **words) {
    if (count != 7) die("usage: generations THREADS GENERATIONS BYTES SMALLEST LARGEST free|pinned");
    threads = (int)number(words[1], "THREADS");
    int generations = (int)number(words[2], "GENERATIONS");
    bytes = number(words[3], "BYTES");
    smallest = number(words[4], "SMALLEST");
    largest = number(words[5], "LARGEST");
    pinned = !strcmp(words[6], "pinned");
    if (threads < 2 || generations < 2) die("THREADS and GENERATIONS start at 2");
    if (smallest < 2 || largest < smallest || bytes < largest) die("2 <= SMALLEST <= LARGEST <= BYTES is needed");

    most_objects = bytes / smallest + 1;
    size_t most_pages = 2 * most_objects + (bytes + largest) / PAGE + 2;
    workers = map((size_t)threads * sizeof *workers);
    legacies = map((size_t)threads * sizeof *legacies);
    old_node = map((size_t)threads * sizeof *old_node);
    new_node = map((size_t)threads * sizeof *new_node);
    heir_of = map((size_t)threads * sizeof *heir_of);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        workers[t].number = t;
        workers[t].random = 88172645463325252u + (uint64_t)t;
        workers[t].objects = map(most_objects * sizeof(struct object));
        workers[t].written = map(most_pages * sizeof(struct written));
        legacies[t].objects = map(most_objects * sizeof(struct object));
    }
    for (generation = 0; generation < generations; generation++) {
        for (int t = 0; t < threads; t++)
            if (pthread_create(&workers[t].thread, NULL, live, &workers[t]) != 0) die("cannot start thread %d", t);
        for (int t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
    }

    struct tally sum = {0};
    uint64_t damaged = 0, threads_on[SHOWN_NODES] = {0};
    for (int t = 0; t < threads; t++) {
        add_tally(&sum, &workers[t].tally);
        damaged += workers[t].damaged;
        threads_on[old_node[t] % SHOWN_NODES]++;
    }
    printf(
        "{\"program\":\"generations\",\"threads\":%d,\"generations\":%d,\"bytes\":%zu,\"smallest\":%zu,"
        "\"largest\":%zu,\"threads_are\":\"%s\",\"pages\":%llu,\"remote\":%llu,\"unknown\":%llu,"
        "\"damaged\":%llu,\"freed_across\":%llu,",
        threads, generations, bytes, smallest, largest, pinned ? "pinned" : "free", (unsigned long long)sum.pages,
        (unsigned long long)sum.remote, (unsigned long long)sum.unknown, (unsigned long long)damaged,
        (unsigned long long)crossed);
    print_spread("spread", sum.on);
    printf(",");
    print_spread("threads_on", threads_on);
    printf("}\n");
    return 0;
}
