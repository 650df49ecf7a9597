// What memory tools do: a library before ours in the preload list that counts calls and passes
// them on to whoever is next.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
atomic_long wrapper_mallocs, wrapper_frees;

void *malloc(size_t n)
{
    if (!next_malloc) next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    wrapper_mallocs++;
    return next_malloc(n);
}

void free(void *p)
{
    if (!next_free) next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    wrapper_frees++;
    next_free(p);
}

long wrapper_count(void) { return wrapper_mallocs; }
