/* loading HOW LIBRARY: memory that goes in and out of a library that is loaded in an uncommon way. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path;

static void *again(void *nothing) {
    for (int i = 0; i < 50; i++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        char *(*copy)(const char *) = (char *(*)(const char *))dlsym(library, "own_copy");
        for (int k = 0; k < 100; k++) free(copy("text"));
        dlclose(library);
    }
    return nothing;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    path = words[2];
    if (!strcmp(words[1], "again")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, again, NULL);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        puts("loaded again and again");
        return 0;
    }
    int deep = !strcmp(words[1], "deepbind");
    void *library = deep ? dlopen(path, RTLD_NOW | RTLD_DEEPBIND) : dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 3;
    }
    char *(*copy)(const char *) = (char *(*)(const char *))dlsym(library, "own_copy");
    void (*release)(void *) = (void (*)(void *))dlsym(library, "own_free");
    void *(*grow)(void *, unsigned long) = (void *(*)(void *, unsigned long))dlsym(library, "own_grow");
    for (int i = 0; i < 10000; i++) {
        char *text = copy("one text or another");
        /* Another namespace has a malloc of its own by design: what it gives goes back to it. */
        char *big = grow(deep ? malloc(50) : copy("x"), 5000 + i);
        big[4999] = 1;
        if (deep) {
            free(text);
            text = malloc(70);
        }
        release(text);
        release(big);
    }
    puts("went in and out");
    return dlclose(library);
}
