// Prints malloc_info on stdout and malloc_stats on stderr with a known amount live, for
// check_introspection.py to read as a monitoring program would.
#include <malloc.h>

#include "check.h"

int main() {
    testing_support::require_library();
    constexpr int blocks = 10000, each = 5000;
    char* kept[blocks];
    for (char*& p : kept) {
        p = static_cast<char*>(malloc(each));
        std::memset(p, 1, each);
    }
    char* large = static_cast<char*>(malloc(20 << 20));
    std::memset(large, 1, 20 << 20);
    for (int i = 0; i < blocks; i += 2) free(kept[i]);
    CHECK(malloc_info(0, stdout) == 0);
    fflush(stdout);
    malloc_stats();
    for (int i = 1; i < blocks; i += 2) free(kept[i]);
    free(large);
}
