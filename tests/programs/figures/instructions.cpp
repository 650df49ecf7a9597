// The loops whose instructions are counted: instructions CASE ROUNDS. Every round is one malloc and
// one free (in `lifo`, a hundred of each to a hundred rounds).
//
// The loops are those of the peers' study as far as its figures tell: glibc 2.36 gives 139, 139, 324,
// 191 and tcmalloc 2.10 77, 77, 80, 81 with the pairs and `lifo` here, to the instruction; the random
// ones come near (glibc 147 and 432 to the study's 155 and 413, tcmalloc 84 and 91 to 88 and 88).
#include <malloc.h>

#include <cstdint>

#include "check.h"

namespace {

// The block is used: one store.
void touch(void* p) { *static_cast<volatile char*>(p) = 1; }

volatile std::size_t bytes_in_use;

__attribute__((noinline)) void pair(std::size_t size, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        void* p = malloc(size);
        touch(p);
        free(p);
    }
}

// What every C++14 program does: the sized delete.
__attribute__((noinline)) void operators(std::size_t size, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        void* p = ::operator new(size);
        touch(p);
        ::operator delete(p, size);
    }
}

__attribute__((noinline)) void arrays(std::size_t size, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        void* p = ::operator new[](size);
        touch(p);
        ::operator delete[](p);
    }
}

__attribute__((noinline)) void zeroed(std::size_t size, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        void* p = calloc(1, size);
        touch(p);
        free(p);
    }
}

// What programs do that count their memory, such as redis.
__attribute__((noinline)) void counted(std::size_t size, long rounds) {
    for (long i = 0; i < rounds; ++i) {
        void* p = malloc(size);
        touch(p);
        bytes_in_use = bytes_in_use + malloc_usable_size(p);
        free(p);
    }
}

__attribute__((noinline)) void lifo(std::size_t size, long rounds) {
    static void* stack[100];
    for (long done = 0; done < rounds; done += 100) {
        for (int i = 0; i < 100; ++i) stack[i] = malloc(size);
        for (int i = 99; i >= 0; --i) free(stack[i]);
    }
}

// A window of live blocks, each replaced in its turn by one of another size.
template <std::uint64_t largest>
__attribute__((noinline)) void drawn(long rounds) {
    static void* window[64];
    std::uint64_t state = 88172645463325252ULL;
    for (long i = 0; i < rounds; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        free(window[i & 63]);
        window[i & 63] = malloc((state >> 33) % largest + 1);
    }
}

}  // namespace

// In a program at a fixed address these are stubs of its own, which every library gets for the function's address.
// Whoever compares must not take them for replacements.
extern void* const addresses[];
void* const addresses[] = {reinterpret_cast<void*>(&malloc), reinterpret_cast<void*>(&free),
                           reinterpret_cast<void*>(static_cast<void (*)(void*)>(::operator delete)),
                           reinterpret_cast<void*>(static_cast<void* (*)(std::size_t)>(::operator new))};

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 3);
    const char* name = argv[1];
    const long rounds = std::atol(argv[2]);
    const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("pair64")) pair(64, rounds);
    else if (is("pair1000")) pair(1000, rounds);
    else if (is("pair30000")) pair(30000, rounds);
    else if (is("lifo64")) lifo(64, rounds);
    else if (is("random512")) drawn<512>(rounds);
    else if (is("random4000")) drawn<4000>(rounds);
    else if (is("new64")) operators(64, rounds);
    else if (is("array64")) arrays(64, rounds);
    else if (is("calloc64")) zeroed(64, rounds);
    else if (is("counted64")) counted(64, rounds);
    else return 2;
}
