/* Where the memory is that the child of a fork has from its parent:
 *   inherited copies   pages that it writes are on its own node, as under glibc, and its own child's on that one's
 *   inherited named    but not if the program names nodes: then memory stays where it belongs
 *   inherited later    memory on a node that the child names is there, whatever it did before
 *   inherited kept     what a child allocates on its parent's node stays there, also if blocks of the parent grow
 *   inherited room     what the program wrote behind a block, within malloc_usable_size(), stays as it grows there
 *   inherited mapped   a mapping of the program's among the heap's keeps its policy */
#include "interface.h"

#include <linux/mempolicy.h>
#include <malloc.h>
#include <sys/wait.h>

enum { SMALL = 1000, SMALL_BLOCKS = 8000, BIG = 20 << 20, PLACES = 3 };
static int place[PLACES]; /* nodes with a CPU */

static void run_on(int node) {
    pin_to_cpu(cpu_of_node(node));
    if (current_node() != node) die("on node %d, not %d", current_node(), node);
}

static void find_places(void) {
    int found = 0;
    for (int node = 0; node < SHOWN_NODES && found < PLACES; node++)
        if (cpu_of_node(node) >= 0) place[found++] = node;
    if (found < PLACES) die("needs %d nodes with CPUs", PLACES);
}

/* Runs `work` in a child on that node. Its failures are ours. */
static void in_child(int node, void (*work)(int node)) {
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) die("cannot fork");
    if (child == 0) {
        failures = 0;
        run_on(node);
        work(node);
        exit(failures != 0);
    }
    int status;
    if (waitpid(child, &status, 0) != child) die("no child");
    expect(status == 0, "the child on node %d ended with status %#x", node, (unsigned)status);
}

static void write_pages(char *p, size_t bytes) {
    for (size_t at = 0; at < bytes; at += PAGE) p[at]++;
    p[bytes - 1]++;
}

/* Whether every page of the block is on the node. */
static void check_pages(const char *what, char *p, size_t bytes, int node) {
    static struct written list[2 * BIG / 4096 + 2];
    struct tally tally = {0};
    count_pages(&tally, list, note_pages(list, 0, p, bytes, node));
    expect(tally.remote + tally.unknown == 0, "%s: %llu of %llu pages are not on node %d", what,
           (unsigned long long)(tally.remote + tally.unknown), (unsigned long long)tally.pages, node);
}

static char *small[SMALL_BLOCKS], *big, *behind, *of_thread[SMALL_BLOCKS];

static void *fill_elsewhere(void *unused) {
    run_on(place[2]);
    for (int i = 0; i < SMALL_BLOCKS; i++) write_pages(of_thread[i] = malloc(SMALL), SMALL);
    return unused;
}

static void fill(void) {
    for (int i = 0; i < SMALL_BLOCKS; i++) write_pages(small[i] = malloc(SMALL), SMALL);
    write_pages(big = malloc(BIG), BIG);
}

static void write_all(void) {
    for (int i = 0; i < SMALL_BLOCKS; i++) {
        write_pages(small[i], SMALL);
        write_pages(of_thread[i], SMALL);
    }
    write_pages(big, BIG);
}

static void check_all(const char *what, int node) {
    for (int i = 0; i < SMALL_BLOCKS; i++) check_pages(what, small[i], SMALL, node);
    check_pages(what, big, BIG, node);
}

/* A block behind it keeps it from growing where it is, and free memory of its node has pages there. */
static void grow_big(int node) {
    run_on(place[0]);
    char *with_pages = malloc(3 * BIG);
    write_pages(with_pages, 3 * BIG);
    free(with_pages);
    run_on(node);
    behind = malloc(BIG);
    big = realloc(big, 2 * BIG);
    write_pages(big, 2 * BIG);
}

static void write_and_allocate(int node) {
    write_all();
    check_all("copies", node);
    for (int i = 0; i < SMALL_BLOCKS; i++) check_pages("copies of another node's", of_thread[i], SMALL, node);
    int (*where)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "numalloc_node_of");
    expect(!where || (where(small[0]) == node && where(big) == node), "numalloc_node_of() says %d and %d, not %d",
           where(small[0]), where(big), node);
    for (int i = 1; i < SMALL_BLOCKS; i += 2) {
        small[i] = realloc(small[i], 3 * SMALL);
        write_pages(small[i], 3 * SMALL);
        check_pages("blocks that realloc() moves", small[i], 3 * SMALL, node);
    }
    grow_big(node);
    check_pages("a long block that realloc() moves", big, 2 * BIG, node);
    expect(!where || where(big) == node, "numalloc_node_of() says %d for a long block, not %d", where(big), node);
    for (int i = 0; i < SMALL_BLOCKS; i += 2) free(small[i]); /* into its lists, and beyond */
    fill();
    check_all("new blocks", node);
    if (node == place[1]) in_child(place[2], write_and_allocate);
}

static void fill_all(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fill_elsewhere, NULL) != 0 || pthread_join(thread, NULL) != 0)
        die("cannot start a thread");
    fill();
}

static void check_copies(void) {
    fill_all();
    in_child(place[1], write_and_allocate);
    write_all();
    check_all("the parent's own", place[0]);
}

static char *named;

static void write_named(int node) {
    (void)node;
    write_pages(named, BIG);
    check_pages("copies of a block on a named node", named, BIG, place[0]);
}

/* What a child names is there, although it has written to its parent's memory on another node, moved and freed it. */
static void name_and_write(int node) {
    write_all();
    grow_big(node);
    check_pages("a long block", big, 2 * BIG, node);
    free(big);
    free(behind);
    for (int i = 0; i < SMALL_BLOCKS; i++) {
        free(small[i]);
        free(of_thread[i]);
    }
    named = API(numalloc_malloc_on_node)(BIG, place[0]);
    write_pages(named, BIG);
    check_pages("a block on a named node", named, BIG, place[0]);
    for (int i = 0; i < 2 * SMALL_BLOCKS; i++) {
        char *p = API(numalloc_malloc_on_node)(SMALL, place[0]);
        write_pages(p, SMALL);
        check_pages("small blocks on a named node", p, SMALL, place[0]);
    }
    in_child(place[2], write_named);
    char text[32];
    snprintf(text, sizeof text, "preferred:%d", place[2]);
    expect(API(numalloc_set_thread_placement)(text) == 0, "%s is refused", text);
    fill();
    check_all("blocks of a thread's placement", place[2]);
}

/* It names a node as the first thing. */
static void place_and_write(int node) {
    (void)node;
    char text[32];
    snprintf(text, sizeof text, "preferred:%d", place[0]);
    write_all();
    for (int i = 0; i < SMALL_BLOCKS; i++) free(small[i]);
    free(big);
    expect(API(numalloc_set_thread_placement)(text) == 0, "%s is refused", text);
    fill();
    check_all("blocks of a thread's placement", place[0]);
}

/* The first block may begin in inherited memory. */
static void keep_own(int node) {
    char *own[3];
    for (int i = 0; i < 3; i++) own[i] = malloc(BIG);
    big = realloc(big, 2 * BIG);
    run_on(place[1]);
    write_pages(own[1], BIG);
    check_pages("a block of the child's, written on another node", own[1], BIG, node);
    write_pages(big, BIG);
    check_pages("a long block that grew on its node, written on another", big, BIG, node);
}

enum { STEP = BIG / 16 };

/* A block that moves for a short step gets room. */
static void get_room(void) {
    size_t bytes = BIG;
    big = malloc(bytes);
    for (int step = 0; step < 8 && malloc_usable_size(big) < bytes + STEP; step++) {
        behind = malloc(BIG);
        big = realloc(big, bytes += STEP);
    }
    if (malloc_usable_size(big) < bytes + STEP) die("a block of %zu bytes has no room", bytes);
    write_pages(big, bytes);
}

static void check_bytes(const char *what, size_t bytes) {
    for (size_t at = 0; at < bytes; at++)
        if (big[at] != 7) die("%s: byte %zu of %zu is lost", what, at, bytes);
}

static void write_room(int node) {
    const size_t usable = malloc_usable_size(big);
    memset(big, 7, usable);
    big = realloc(big, usable - PAGE);
    check_bytes("a block that grew into its room", usable);
    check_pages("a block that grew into its room", big, usable, node);
    big = realloc(big, usable + STEP);
    check_bytes("a block that grew behind its room", usable);
    write_pages(big, usable + STEP);
    check_pages("a block that grew behind its room", big, usable + STEP, node);
}

/* Maps a page right behind the heap, with a policy of its own, and lets the heap grow over it. */
static char *map_among(void) {
    char *last = malloc(BIG), *end = last;
    unsigned long from, to;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)end >= from && (uintptr_t)end < to) end = (char *)to;
        else if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)end == from) end = (char *)to;
    if (maps) fclose(maps);
    char *page = mmap(end, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    unsigned long nodes = 1UL << place[1];
    if (page != end || syscall(SYS_mbind, page, PAGE, MPOL_BIND, &nodes, 65, 0) != 0) die("cannot map behind the heap");
    *page = 1;
    for (int i = 0; i < 64 && last < page; i++) write_pages(last = malloc(BIG), BIG);
    if (last < page) die("the heap has not grown beyond the page");
    big = last;
    return page;
}

static char *among;

static void check_among(int node) {
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0, among, MPOL_F_ADDR) != 0) die("get_mempolicy: %s", strerror(errno));
    expect(mode == MPOL_BIND, "the policy of the program's own page is %d", mode);
    *among = 2;
    check_pages("the program's own page", among, 1, place[1]);
    write_pages(big, BIG);
    check_pages("copies behind it", big, BIG, node);
}

int main(int count, char **words) {
    if (count != 2) die("usage: inherited copies|named|later|kept|room|mapped");
    find_places();
    run_on(place[0]);
    if (!strcmp(words[1], "copies")) {
        check_copies();
    } else if (!strcmp(words[1], "named")) {
        named = API(numalloc_malloc_on_node)(BIG, place[0]);
        write_pages(named, BIG);
        in_child(place[1], write_named);
    } else if (!strcmp(words[1], "later")) {
        fill_all();
        char *hole = malloc(BIG); /* for the children */
        hole += PAGE - (uintptr_t)hole % PAGE;
        if (madvise(hole, BIG / 2, MADV_DONTFORK) != 0) die("MADV_DONTFORK: %s", strerror(errno));
        in_child(place[1], name_and_write);
        in_child(place[1], place_and_write);
    } else if (!strcmp(words[1], "room")) {
        get_room();
        in_child(place[1], write_room);
    } else if (!strcmp(words[1], "kept")) {
        fill_all();
        in_child(place[0], keep_own);
    } else if (!strcmp(words[1], "mapped")) {
        among = map_among();
        in_child(place[2], check_among);
    } else {
        die("'%s' is none of copies, named, later, kept, room, mapped", words[1]);
    }
    return verdict();
}
