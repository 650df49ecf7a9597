/* Memory whose places are known, each asked for by a function of its own: profiled FILE writes the heap profile there
 * while what is kept lives. Node 0's thread keeps blocks of its own node and of node 1, and what it allocates for a
 * thread of node 1 is freed by that one. */
#include "interface.h"

enum { KEPT = 300, BYTES = 20000 };
static void *kept[2 * KEPT], *handed_over[KEPT];
static void *(*on_node)(size_t, int);

__attribute__((noinline)) void *keep_at_home(void) {
    void *p = malloc(BYTES);
    memset(p, 1, BYTES);
    return p;
}

__attribute__((noinline)) void *keep_far_away(void) {
    void *p = on_node(BYTES, 1);
    memset(p, 1, BYTES);
    return p;
}

__attribute__((noinline)) void *give_away(void) {
    void *p = malloc(BYTES);
    memset(p, 1, BYTES);
    return p;
}

static void *free_there(void *argument) {
    (void)argument;
    pin_to_cpu(cpu_of_node(1));
    for (int i = 0; i < KEPT; i++) free(handed_over[i]);
    return NULL;
}

int main(int count, char **words) {
    if (count != 2) die("usage: profiled FILE");
    on_node = API(numalloc_malloc_on_node);
    pin_to_cpu(cpu_of_node(0));
    for (int i = 0; i < KEPT; i++) {
        kept[2 * i] = keep_at_home();
        kept[2 * i + 1] = keep_far_away();
        handed_over[i] = give_away();
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_there, NULL) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
    expect(API(numalloc_profile_dump)(words[1]) == 0, "the profile was not written: %s", strerror(errno));
    for (int i = 0; i < 2 * KEPT; i++) expect(kept[i] != NULL, "block %d is not there", i);
    return verdict();
}
