// CHECK for the tests in C.
#pragma once

#include <stdio.h>
#include <unistd.h>

// By _exit: exit handlers may hang on what just failed.
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            dprintf(2, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)
