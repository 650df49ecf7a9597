// Uses 25 MiB, after a peak of 55, and waits to be looked at from outside.
#include "check.h"

int main() {
    testing_support::require_library();
    for (int i = 0; i < 22000; ++i) std::memset(malloc(1000), i, 1000);
    void* large = malloc(30 << 20);
    std::memset(large, 1, 30 << 20);
    free(large);
    std::memset(malloc(3 << 20), 1, 3 << 20);
    std::puts("ready");
    std::fflush(stdout);
    for (;;) pause();
}
