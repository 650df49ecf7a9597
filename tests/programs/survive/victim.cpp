// Uses every call of the interface, from threads too, on a machine that refuses things. It says
// "done" on stdout whatever was refused, as long as each refusal was NULL with ENOMEM (or a thread
// that could not be started), and nothing else: memory given is sound, and what was given before
// a refusal stays whole. Argument: "strict" where nothing may be refused.
#include <malloc.h>
#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "check.h"

namespace {

bool strict;
int refusals;

unsigned char* checked(void* p, std::size_t size, bool zeroed = false) {
    if (p == nullptr) {
        CHECK(!strict);
        CHECK(errno == ENOMEM);
        __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
        return nullptr;
    }
    auto* bytes = static_cast<unsigned char*>(p);
    if (zeroed)
        for (std::size_t i = 0; i < size; i += size < 10000 ? 1 : 97) CHECK(bytes[i] == 0);
    for (std::size_t i = 0; i < size; i += 512) bytes[i] = static_cast<unsigned char>(size + i);
    return bytes;
}

void verify(const unsigned char* p, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 512) CHECK(p[i] == static_cast<unsigned char>(size + i));
}

void rounds(int count) {
    for (int round = 0; round < count; ++round) {
        unsigned char* blocks[120];
        std::size_t sizes[120];
        int live = 0;
        for (std::size_t size :
             {std::size_t{16}, std::size_t{500}, std::size_t{4000}, std::size_t{33000}, std::size_t{300000},
              std::size_t{800000}, std::size_t{5000000}, std::size_t{12000000}}) {
            for (int i = 0; i < (size < 100000 ? 12 : 2); ++i) {
                sizes[live] = size;
                blocks[live] = i % 3 == 2 ? checked(calloc(1, size), size, true) : checked(malloc(size), size);
                ++live;
            }
            void* aligned = nullptr;
            const int result = posix_memalign(&aligned, 65536, size);
            CHECK(result == 0 || (!strict && result == ENOMEM));
            if (result == 0) free(aligned);
        }
        for (int i = 0; i < live; ++i) {
            if (blocks[i] == nullptr) continue;
            verify(blocks[i], sizes[i]);
            if (i % 4 == 0) {
                errno = 0;
                auto* grown = static_cast<unsigned char*>(realloc(blocks[i], sizes[i] * 2));
                if (grown == nullptr) {
                    CHECK(!strict && errno == ENOMEM);
                    verify(blocks[i], sizes[i]);
                } else {
                    blocks[i] = grown;
                    verify(grown, sizes[i]);
                }
            }
        }
        for (int i = 0; i < live; ++i) {
            errno = 7;
            free(blocks[i]);
            CHECK(errno == 7);
        }
        malloc_trim(0);
        (void)mallinfo2();
    }
}

void* thread_main(void*) {
    rounds(1);
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    strict = argc > 1 && std::strcmp(argv[1], "strict") == 0;
    rounds(1);
    for (int i = 0; i < 2; ++i) {
        pthread_t threads[2];
        bool started[2];
        for (int k = 0; k < 2; ++k) {
            started[k] = pthread_create(&threads[k], nullptr, thread_main, nullptr) == 0;
            CHECK(started[k] || !strict);
        }
        for (int k = 0; k < 2; ++k)
            if (started[k]) CHECK(pthread_join(threads[k], nullptr) == 0);
    }
    rounds(1);
    const char done[] = "done\n";
    CHECK(write(1, done, 5) == 5);
    if (refusals > 0) return 3;  // told apart by the caller: something was refused, and well
    return 0;
}
