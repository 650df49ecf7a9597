// A program may copy bytes that it never wrote: a block that is partly filled, a structure with unused fields. They may
// be what an allocator has left there, and come back to where they were. None of that is a second free.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "c_check.h"

enum { rounds = 50 };

// A block of which only the first byte is written. The compiler does not know what it is.
static char* take(size_t size) {
    char* p = malloc(size);
    __asm__ volatile("" : "+r"(p) : : "memory");
    CHECK(p != NULL);
    p[0] = 0;
    return p;
}

// The compiler keeps what was written to the block before.
static void give(void* p) {
    __asm__ volatile("" : : "r"(p) : "memory");
    free(p);
}

// Leaves free memory that served blocks of the size.
static void serve(size_t size) {
    void* block[8];
    for (int i = 0; i < 8; ++i) block[i] = take(size);
    for (int i = 0; i < 8; ++i) give(block[i]);
}

// The allocator's own copy: a big block, in memory that served smaller ones, shrinks and grows again.
static void by_realloc(size_t size, size_t big) {
    for (int round = 0; round < rounds; ++round) {
        serve(size);
        char* p = take(big);
        CHECK((p = realloc(p, 100)) != NULL);
        CHECK((p = realloc(p, size)) != NULL);
        CHECK((p = realloc(p, size + 1)) != NULL);
        give(p);
    }
}

// The same by hand.
static void by_hand(size_t size, size_t big) {
    for (int round = 0; round < rounds; ++round) {
        serve(size);
        char* p = take(big);
        char* const kept = take(100);
        memcpy(kept, p, 100);
        give(p);
        p = take(size);
        memcpy(p, kept, 100);
        give(kept);
        give(p);
    }
}

// An array of structures, in memory that served single ones, is copied and freed; then each becomes a block again.
static void element_by_element(size_t size) {
    enum { bytes = 8 << 20 };
    const size_t count = bytes / size;
    char** const single = (char**)take(count * sizeof *single);
    for (size_t i = 0; i < count; ++i) single[i] = take(size);
    for (size_t i = 0; i < count; ++i) give(single[i]);

    char* const array = take(bytes / 2);
    char* const copy = take(bytes / 2);
    memcpy(copy, array, bytes / 2);
    const uintptr_t first = (uintptr_t)array;
    give(array);
    size_t in_place = 0;
    for (size_t i = 0; i < count; ++i) {
        single[i] = take(size);
        const uintptr_t offset = (uintptr_t)single[i] - first;
        if (offset > bytes / 2 - size) continue;
        memcpy(single[i], copy + offset, size);
        ++in_place;
    }
    CHECK(in_place > count / 16);
    for (size_t i = 0; i < count; ++i) give(single[i]);
    give(copy);
    give(single);
}

int main(void) {
    by_realloc(300000, 1000000);
    by_realloc(40000, 600000);
    by_realloc(3000, 2000000);
    by_hand(300000, 1000000);
    by_hand(20000, 700000);
    for (size_t size = 16; size <= 4096; size *= 4) element_by_element(size);
    element_by_element(48);
    element_by_element(1000);
    puts("no copy was taken for a second free");
    return 0;
}
