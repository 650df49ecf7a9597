// A library that replaces dlsym(), as shims of GPUs do, and allocates in it. RTLD_NEXT is then the next library behind
// this one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void* dlsym(void* handle, const char* name) {
    static void* (*its)(void*, const char*);
    if (its == NULL) *(void**)&its = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    char* const copy = strdup(name);
    void* const found = its(handle, copy);
    free(copy);
    return found;
}
