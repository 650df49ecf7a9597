/* Uses malloc as any program does and says who served it. With an argument it frees what it must
   not: the message that ends it names the allocator. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<numalloc/numalloc.h>)
#include <numalloc/numalloc.h>
#endif
#endif

static void* work(void* unused) {
    (void)unused;
    for (int i = 0; i < 1000; ++i) {
        char* p = malloc((size_t)(i * 37 % 5000 + 1));
        if (p == NULL) abort();
        memset(p, i, 1);
        p = realloc(p, 6000);
        free(p);
    }
    return NULL;
}

int main(int argc, char** argv) {
    (void)argv;
    char on_stack[64];
    void* volatile not_ours = on_stack + 16;
    if (argc > 1) free(not_ours);

    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 2;
    work(NULL);
    pthread_join(thread, NULL);

    /* numalloc's class for 1025 bytes; glibc gives 1032. */
    void* p = malloc(1025);
    printf("%zu\n", malloc_usable_size(p));
    free(p);
    return 0;
}
