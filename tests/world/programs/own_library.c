/* Allocates, and frees what others allocated. */
#include <stdlib.h>
#include <string.h>

char *own_copy(const char *text) { return strdup(text); }
void own_free(void *p) { free(p); }
void *own_grow(void *p, unsigned long size) { return realloc(p, size); }
