/* numalloc.h for programs that get the library by LD_PRELOAD only: API(psm_alloc)(bytes, owner). */
#ifndef NUMALLOC_TESTS_INTERFACE_H
#define NUMALLOC_TESTS_INTERFACE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "../../../include/numalloc/numalloc.h"
#include "check.h"

static inline void *symbol(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) die("%s is not there: preload the library", name);
    return found;
}

#define API(name) ((__typeof__(&name))symbol(#name))

#endif
