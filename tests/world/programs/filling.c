/* How much of one thing there is until there is no more: small blocks, the largest block, threads, or mappings
   beside a heap. The second word limits the address space, in MiB, once the program runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *wait_for_ever(void *nothing) {
    pause();
    return nothing;
}

int main(int count, char **words) {
    static char buffer[4096];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    void *first = malloc(1000);
    if (count > 2) {
        struct rlimit limit;
        limit.rlim_cur = limit.rlim_max = (rlim_t)atol(words[2]) << 20;
        if (setrlimit(RLIMIT_AS, &limit)) return 3;
    }
    unsigned long found = 0;
    if (!strcmp(words[1], "small")) {
        while (found < (4ul << 30) / 1000 && malloc(1000)) found++;
        found = found * 1000 >> 20;
    } else if (!strcmp(words[1], "large")) {
        void *p;
        for (unsigned long mib = 4096; mib && !found; mib -= 8)
            if ((p = malloc(mib << 20))) found = mib;
    } else if (!strcmp(words[1], "threads")) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 8 << 20);
        pthread_t thread;
        while (found < 400 && !pthread_create(&thread, &attributes, wait_for_ever, NULL)) found++;
    } else {
        for (int i = 0; i < 50000; i++) (void)!malloc(1000);
        while (found < 4096 &&
               mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            found++;
    }
    printf("%s: %lu\n", words[1], found);
    fflush(stdout);
    _exit(first == NULL);
}
