/* An auditor: the loader opens it, with a C library of its own, before all else. */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>

unsigned int la_version(unsigned int version) {
    free(malloc(1000));
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned int la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie) {
    (void)map, (void)id, (void)cookie;
    free(malloc(100));
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
