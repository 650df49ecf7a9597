/* Writes behind the end of a block: a sanitizer must see it. */
#include <stdlib.h>

int main(void) {
    volatile char *p = malloc(100);
    p[100] = 1;
    free((void *)p);
    return 0;
}
