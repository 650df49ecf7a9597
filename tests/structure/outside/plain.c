/* Knows nothing of numalloc: the size of its block says whose malloc it has. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char* volatile p = malloc(1100);
    printf("%zu\n", malloc_usable_size(p));
    free(p);
    return 0;
}
