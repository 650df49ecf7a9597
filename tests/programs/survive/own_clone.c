// The clone() of a library that is behind numalloc's in the search order: each argument arrives, and the result.
#include "own_clone.h"

#include <stdlib.h>

#include "c_check.h"

int main(void) {
    const struct node list = {.value = 1, .next = NULL};
    struct node* copy = NULL;
    CHECK(clone(&list, 1.5, &copy, 10, 100, 1000, 10000, 100000) == 3.0);
    CHECK(copy != NULL && copy->value == 111111);
    free(copy);
    puts("the library's clone was called");
    return 0;
}
