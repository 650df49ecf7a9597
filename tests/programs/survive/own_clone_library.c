// A library with a function clone() that has nothing to do with processes: POSIX does not reserve the name.
#include "own_clone.h"

#include <stdlib.h>

double clone(const struct node* list, double factor, struct node** result, long a, long b, long c, long d, long e) {
    struct node* const made = malloc(sizeof *made);
    if (made == NULL) return 0;
    *made = (struct node){.value = list->value + a + b + c + d + e, .next = NULL};
    *result = made;
    return 2 * factor;
}
