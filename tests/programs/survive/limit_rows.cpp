// How much a program gets under a limit on its address space, in one of four ways:
//
//   limit_rows small|large|threads|mappings MIB start|later
//
// `later` sets the limit itself, once the heap is in use. Prints MiB, or a number of threads.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "check.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void* wait_for_ever(void*) {
    free(malloc(100));
    for (;;) pause();
}

std::size_t small_blocks(std::size_t at_most) {
    std::size_t bytes = 0;
    while (bytes < at_most) {
        auto* p = static_cast<char*>(malloc(1000));
        if (p == nullptr) break;
        p[999] = 1;
        bytes += 1000;
    }
    return bytes / mib;
}

std::size_t largest_block(std::size_t limit) {
    std::size_t fits = 0;
    for (std::size_t too_large = limit + 1; too_large - fits > 1;) {
        const std::size_t middle = fits + (too_large - fits) / 2;
        void* p = malloc(middle * mib);
        free(p);
        (p != nullptr ? fits : too_large) = middle;
    }
    return fits;
}

std::size_t threads() {
    pthread_t thread;
    std::size_t count = 0;
    while (count < 2000 && pthread_create(&thread, nullptr, wait_for_ever, nullptr) == 0) ++count;
    return count;
}

// Beside a heap of a quarter of the limit.
std::size_t mappings(std::size_t limit) {
    std::size_t count = small_blocks(limit / 4 * mib);
    while (mmap(nullptr, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) ++count;
    return count;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 4);
    const char* row = argv[1];
    const auto limit = static_cast<std::size_t>(std::atol(argv[2]));
    free(malloc(100));
    if (std::strcmp(argv[3], "later") == 0) {
        const rlimit address_space{limit * mib, limit * mib};
        CHECK(setrlimit(RLIMIT_AS, &address_space) == 0);
    }
    std::size_t got = 0;
    if (std::strcmp(row, "small") == 0) got = small_blocks(~std::size_t{0});
    if (std::strcmp(row, "large") == 0) got = largest_block(limit);
    if (std::strcmp(row, "threads") == 0) got = threads();
    if (std::strcmp(row, "mappings") == 0) got = mappings(limit);
    char text[32];
    const int length = std::snprintf(text, sizeof text, "%zu\n", got);  // no stdio buffer: there may be no memory left
    CHECK(write(1, text, static_cast<std::size_t>(length)) == length);
    _exit(0);
}
