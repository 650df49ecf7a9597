// Requests that the kernel refuses cost nothing that stays.
//   refused huge    blocks that no limit allows: the address space is as before
//   refused moved   a block whose pages realloc moved is freed, and another one grows, while no mapping is left
#define _GNU_SOURCE
#include "c_check.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MIB = 1 << 20, MOST = 300000 };

static long pages_of_address_space(void) {
    long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    return pages;
}

static void huge(void) {
    const struct rlimit limit = {(rlim_t)2048 * MIB, (rlim_t)2048 * MIB};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    free(malloc(MIB));
    const long before = pages_of_address_space();
    for (size_t gib = 2; gib <= 64; ++gib) CHECK(malloc(gib << 30) == NULL);
    for (size_t tenths = 1; tenths < 20; ++tenths) {
        void* block = NULL;
        CHECK(malloc(tenths * ((size_t)MIB * MIB / 10)) == NULL);
        CHECK(posix_memalign(&block, (size_t)MIB * MIB, 100) != 0);
    }
    const long more = pages_of_address_space() - before;
    CHECK(more * 4096 < 16 * MIB);
}

static void* mapped[MOST];
static long use_up(void) {
    long n = 0;
    // Neighbours differ, or they would be one mapping.
    while (n < MOST && (mapped[n] = mmap(NULL, 4096, n % 2 ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                         0)) != MAP_FAILED)
        ++n;
    if (n < MOST) return n;
    puts("skipped: more mappings than can be used up");
    fflush(stdout);
    _exit(77);
}

static void give_back(long n) {
    while (n > 0) munmap(mapped[--n], 4096);
}

static char* filled(size_t bytes) {
    char* const block = malloc(bytes);
    CHECK(block != NULL);
    return memset(block, 1, bytes);
}

static void moved(void) {
    char* const small = filled(8 * MIB);
    char* const wall = filled(MIB);
    char* const room = filled(40 * MIB);
    char* const wall_of_room = filled(MIB);
    free(room);
    char* block = filled(16 * MIB);
    char* const behind = filled(MIB);
    block = realloc(block, 32 * MIB);
    CHECK(block != NULL);

    const long n = use_up();
    free(block);
    malloc_trim(0);
    char* grown = small;
    // Growing elsewhere needs a mapping or a copy.
    for (size_t mib = 9; mib <= 14; ++mib) {
        grown = realloc(grown, mib * MIB);
        CHECK(grown != NULL && grown[8 * MIB - 1] == 1);
    }
    give_back(n);
    free(grown);
    free(wall);
    free(wall_of_room);
    free(behind);
    malloc_trim(0);
    const struct mallinfo2 all = mallinfo2();
    CHECK(all.hblkhd < 2 * MIB);
    CHECK(pages_of_address_space() * 4096 < 64L * MIB);
}

int main(int count, char** words) {
    CHECK(count == 2);
    if (strcmp(words[1], "huge") == 0) huge();
    else moved();
    puts("nothing stays");
    return 0;
}
