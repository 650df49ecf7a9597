// What memory tools do: a library before ours in the preload list that counts calls and passes
// them on to whoever is next.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static atomic_long mallocs, reallocs, frees;

void *malloc(size_t n) {
    if (!next_malloc) next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    mallocs++;
    return next_malloc(n);
}

void *realloc(void *p, size_t n) {
    if (!next_realloc) next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    reallocs++;
    return next_realloc(p, n);
}

void free(void *p) {
    if (!next_free) next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    frees++;
    next_free(p);
}

long wrapper_count(void) { return mallocs; }
long wrapper_reallocs(void) { return reallocs; }
long wrapper_frees(void) { return frees; }
