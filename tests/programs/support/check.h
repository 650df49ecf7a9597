// What the small test programs share: a check that says where it failed and ends the program,
// and a proof that the allocator under test is the one in use.
//
// NUMALLOC_TEST_ANY=1 waives that proof, so that every program can be tried on glibc's malloc,
// or on another library, to see that the test itself is right.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// exit handlers may hang on what just failed, so a failure leaves by _exit.
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

namespace testing_support {

// The file that the program's malloc comes from.
inline const char* malloc_file() {
    Dl_info info{};
    void* address = dlsym(RTLD_DEFAULT, "malloc");
    return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : "(unknown)";
}

inline bool any_allocator() { return std::getenv("NUMALLOC_TEST_ANY") != nullptr; }

inline bool library_in_use() { return std::strstr(malloc_file(), "libnumalloc") != nullptr; }

inline void require_library() {
    if (any_allocator() || library_in_use()) return;
    std::fprintf(stderr, "malloc is %s, not libnumalloc: this run would prove nothing\n", malloc_file());
    _exit(1);
}

// A small generator, so that runs repeat from a seed and nothing here allocates.
class Random {
public:
    explicit Random(unsigned long long seed) : state_(seed * 2 + 1) { next(); }
    unsigned long long next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x2545F4914F6CDD1DULL;
    }
    // 0 to bound-1
    unsigned long long below(unsigned long long bound) { return (next() >> 11) % bound; }

private:
    unsigned long long state_;
};

inline long number_from_environment(const char* name, long otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::strtol(text, nullptr, 0) : otherwise;
}

// Bytes that the allocator counts as allocated: the same on every machine and under every load, unlike the resident
// set.
inline std::size_t bytes_in_use() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// The verdict of a run in scripts/test.sh --full may depend on resident memory; the gate's may not.
inline bool judges_resident_memory() { return std::getenv("NUMALLOC_TEST_FULL") != nullptr; }

// The resident set in KiB, now and at most, read without stdio (which would allocate).
long resident_kib();
long peak_kib();

}  // namespace testing_support
