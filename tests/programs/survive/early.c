// The first malloc is in a pre-init array, before libc has set `environ`: options are obeyed.
#include <stdio.h>
#include <stdlib.h>

extern __attribute__((weak)) int numalloc_option_get(const char*, char*, size_t);

static void* volatile first;
static void allocate(int count, char** words, char** environment) {
    (void)count, (void)words, (void)environment;
    first = malloc(100);
}
__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char**, char**) = allocate;

int main(void) {
    char value[32] = "no library";
    free(first);
    if (numalloc_option_get != NULL) numalloc_option_get("binding", value, sizeof value);
    puts(value);
    return 0;
}
