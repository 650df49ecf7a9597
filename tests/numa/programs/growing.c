/* realloc of large blocks up and down: what was in them survives, and they stay on the thread's node.
 * An allocator that has the kernel move pages meets here every kind of neighbourhood of mappings.
 *   growing THREADS ROUNDS */
#include "check.h"

enum { BLOCKS = 8 };
static int rounds;

static void *work(void *argument) {
    int number = (int)(intptr_t)argument;
    pin_to_cpu(number % cpu_count());
    int node = current_node();
    char *blocks[BLOCKS] = {0};
    size_t sizes[BLOCKS] = {0};
    uint32_t random = (uint32_t)number + 1;
    for (int round = 0; round < rounds; round++) {
        random = random * 1103515245 + 12345;
        int i = (int)(random >> 16) % BLOCKS;
        random = random * 1103515245 + 12345;
        size_t size = (1 << 20) + (random >> 8) % (7 << 20);
        char *block = realloc(blocks[i], size), mark = (char)('a' + i);
        if (!block) die("realloc(%zu) failed", size);
        size_t kept = sizes[i] < size ? sizes[i] : size;
        bool intact = true;
        for (size_t at = 0; at < kept; at += PAGE) intact &= block[at] == mark;
        expect(intact, "thread %d, round %d: realloc from %zu to %zu bytes lost what was in it", number, round,
               sizes[i], size);
        memset(block, mark, size);
        uint64_t elsewhere = pages_elsewhere(block, size, node, NULL);
        expect(elsewhere == 0, "thread %d, round %d: %llu pages elsewhere", number, round,
               (unsigned long long)elsewhere);
        blocks[i] = block;
        sizes[i] = size;
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return NULL;
}

int main(int count, char **words) {
    if (count != 3) die("usage: growing THREADS ROUNDS");
    int threads = (int)number(words[1], "THREADS");
    rounds = (int)number(words[2], "ROUNDS");
    pthread_t thread[threads];
    for (int t = 0; t < threads; t++)
        if (pthread_create(&thread[t], NULL, work, (void *)(intptr_t)t) != 0) die("cannot start thread %d", t);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    return verdict();
}
