/* Something to look at: a list, threads that churn, and then it ends, waits or aborts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct link {
    struct link *next;
    int value;
};
struct link *head;

int list_length(const struct link *l) {
    int n = 0;
    for (; l; l = l->next) n++;
    return n;
}

__attribute__((noinline)) void stop_here(void) { __asm__ volatile(""); }

static void *churn(void *seed) {
    void *kept[64] = {0};
    unsigned long sum = 0, x = (unsigned long)seed;
    for (int i = 0; i < 20000; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long size = (x >> 40) % 3000 + 1, place = (x >> 33) % 64;
        free(kept[place]);
        kept[place] = malloc(size);
        memset(kept[place], (int)place, size);
        sum += size;
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    return (void *)sum;
}

int main(int count, char **words) {
    for (int i = 0; i < 10000; i++) {
        struct link *l = malloc(sizeof *l + i % 500);
        l->next = head;
        l->value = i;
        head = l;
    }
    char *big = malloc(20 << 20);
    memset(big, 1, 20 << 20);
    pthread_t threads[3];
    unsigned long sum = 0;
    for (long t = 0; t < 3; t++) pthread_create(&threads[t], NULL, churn, (void *)(t + 1));
    for (int t = 0; t < 3; t++) {
        void *part;
        pthread_join(threads[t], &part);
        sum += (unsigned long)part;
    }
    stop_here();
    printf("sum %lu, length %d\n", sum, list_length(head));
    fflush(stdout);
    if (count > 1 && words[1][0] == 'w') pause();
    if (count > 1 && words[1][0] == 'a') abort();
    free(big);
    while (head) {
        struct link *next = head->next;
        free(head);
        head = next;
    }
    return 0;
}
