/* A node that is full. A thread on NODE allocates blocks of SIZE bytes and writes them:
 *   full_node NODE SIZE preferred   MEGABYTES more than the node has free: all is served, the
 *                                   node's own memory first, and what does not fit is on the nearest nodes
 *   full_node NODE SIZE strict      until malloc says ENOMEM: all is on NODE; and memory that is
 *                                   given back can be had again
 *   full_node NODE SIZE NODES       as preferred, with memory=bind:NODES: what does not fit is on the others of these,
 *                                   where the kernel does not know a home among nodes (before Linux 5.17), too */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { MORE_MEGABYTES = 48, MOST_MEGABYTES = 4096 };

static uint64_t nearest_nodes(int node) {
    char path[128], line[1024];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) die("cannot read %s", path);
    fclose(file);
    uint64_t online = read_set("/sys/devices/system/node/online"),
             memory = read_set("/sys/devices/system/node/has_memory");
    uint64_t nearest = 0;
    long least = 1000;
    char *at = line;
    for (int other = 0; other < SHOWN_NODES; other++) {
        if (!(online >> other & 1)) continue; /* the line has one number for each node that is there */
        long distance = strtol(at, &at, 10);
        if (other == node || !(memory >> other & 1)) continue;
        if (distance < least) {
            least = distance;
            nearest = 0;
        }
        if (distance == least) nearest |= UINT64_C(1) << other;
    }
    return nearest;
}

/* Starts the program again, in a kernel without set_mempolicy_home_node(). */
static void without_homes(char **words) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 450, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        die("cannot set a filter");
    setenv("WITHOUT_HOMES", "1", 1);
    execv("/proc/self/exe", words);
    die("cannot start again");
}

struct chain {
    struct chain *next; /* in the blocks themselves: nothing else is allocated */
};

int main(int count, char **words) {
    if (count != 4) die("usage: full_node NODE SIZE preferred|strict|NODES");
    int node = (int)number(words[1], "NODE");
    size_t size = number(words[2], "SIZE");
    bool strict = !strcmp(words[3], "strict"), within = !strict && strcmp(words[3], "preferred") != 0;
    if (within && !getenv("WITHOUT_HOMES")) without_homes(words);
    if (cpu_of_node(node) < 0) die("node %d has no CPU", node);
    if (size < sizeof(struct chain)) die("SIZE is too small");
    pin_to_cpu(cpu_of_node(node));
    setvbuf(stdout, map(65536), _IOFBF, 65536); /* printing must not need memory on a full node */

    /* Reading a file needs memory too. */
    uint64_t nearest = within ? parse_set(words[3]) & ~(UINT64_C(1) << node) : nearest_nodes(node);
    long free_before = free_megabytes(node);
    size_t most = (size_t)(strict ? MOST_MEGABYTES : free_before + MORE_MEGABYTES) << 20, got = 0;
    struct chain *all = NULL;
    uint64_t on[SHOWN_NODES] = {0};
    int error = 0;
    while (got < most) {
        struct chain *block = malloc(size);
        if (!block) {
            error = errno;
            break;
        }
        memset(block, 1, size);
        block->next = all;
        all = block;
        got += size;
    }
    for (struct chain *block = all; block; block = block->next) pages_elsewhere(block, size, node, on);
    uint64_t total = 0, near = 0;
    for (int other = 0; other < SHOWN_NODES; other++) {
        total += on[other];
        if (nearest >> other & 1) near += on[other];
    }
    printf("node %d had %ld MB free; got %zu MB: %llu pages there, %llu on the next, %llu in all\n", node, free_before,
           got >> 20, (unsigned long long)on[node], (unsigned long long)near, (unsigned long long)total);
    if (strict) {
        expect(error == ENOMEM, "malloc should have ended with ENOMEM, and ended with %s",
               error ? strerror(error) : "success");
        expect(total == on[node], "%llu pages are on other nodes", (unsigned long long)(total - on[node]));
        expect(got >> 20 >= (size_t)free_before / 2, "only %zu of %ld free MB could be had", got >> 20, free_before);
    } else {
        expect(!error, "malloc failed: %s", strerror(error));
        expect(got >= most, "only %zu of %zu MB could be had", got >> 20, most >> 20);
        expect(on[node] > 0 && near > 0, "no page is on the node itself, or none on the next ones");
        expect(on[node] + near == total, "%llu pages are on nodes farther away, or not allowed",
               (unsigned long long)(total - on[node] - near));
    }
    struct chain *next;
    size_t given_back = 0;
    for (; all && given_back < got / 2; all = next, given_back += size) {
        next = all->next;
        free(all);
    }
    size_t again = 0;
    for (; again < given_back / 2; again += size) {
        struct chain *block = malloc(size);
        if (!block) break;
        memset(block, 1, size);
        if (strict)
            expect(pages_elsewhere(block, size, node, NULL) == 0, "memory given back and taken again is elsewhere");
        block->next = all;
        all = block;
    }
    expect(again >= given_back / 2, "after %zu MB were freed only %zu MB could be had again", given_back >> 20,
           again >> 20);
    return verdict();
}
