// A small program that locks all its memory, now and later, and goes on allocating.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
    char* before = malloc(100000);
    if (before == NULL) return 1;
    memset(before, 1, 100000);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        perror("mlockall");
        return 2;
    }
    char* after = malloc(300000);
    if (after == NULL) return 3;
    memset(after, 1, 300000);
    puts("locked");
    return 0;
}
