// Names that the headers of this glibc no longer or not yet declare, found as a program would find
// them at run time: cfree, free_sized, free_aligned_sized. And the way of every interposer: the
// names are there for dlsym.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "check.h"

namespace {

template <class F>
F find(const char* name) {
    return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

// These are no part of glibc 2.36, so a trial on glibc has nothing to test.
#define SKIP_ON_GLIBC()                                \
    if (testing_support::any_allocator()) GTEST_SKIP()

TEST(Cfree, Frees) {
    SKIP_ON_GLIBC();
    auto cfree = find<void (*)(void*)>("cfree");
    ASSERT_NE(cfree, nullptr);
    const std::size_t before = testing_support::bytes_in_use();
    for (int i = 0; i < 10000; ++i) {
        void* p = malloc(50000);
        std::memset(p, 1, 50000);
        errno = 3;
        cfree(p);
        ASSERT_EQ(errno, 3);
    }
    cfree(nullptr);
    EXPECT_LT(testing_support::bytes_in_use(), before + (32 << 20));
}

TEST(FreeSized, FreesWhatMallocCallocAndReallocGave) {
    SKIP_ON_GLIBC();
    auto free_sized = find<void (*)(void*, std::size_t)>("free_sized");
    ASSERT_NE(free_sized, nullptr);
    const std::size_t before = testing_support::bytes_in_use();
    for (std::size_t size = 0; size < 3000000; size = size * 5 / 4 + 1) {
        for (int i = 0; i < 20; ++i) {
            void* p = malloc(size);
            std::memset(p, 1, size);
            errno = 3;
            free_sized(p, size);
            ASSERT_EQ(errno, 3);
            free_sized(calloc(1, size), size);
            free_sized(realloc(malloc(1), size + 1), size + 1);
        }
    }
    free_sized(nullptr, 0);
    free_sized(nullptr, 100);
    EXPECT_LT(testing_support::bytes_in_use(), before + (64 << 20));
}

TEST(FreeAlignedSized, FreesWhatAlignedAllocGave) {
    SKIP_ON_GLIBC();
    auto free_aligned_sized = find<void (*)(void*, std::size_t, std::size_t)>("free_aligned_sized");
    ASSERT_NE(free_aligned_sized, nullptr);
    const std::size_t before = testing_support::bytes_in_use();
    for (std::size_t alignment = 8; alignment <= (1 << 22); alignment *= 2) {
        for (std::size_t size : {std::size_t{1}, alignment, 3 * alignment}) {
            for (int i = 0; i < 4; ++i) {
                void* p = aligned_alloc(alignment, size);
                ASSERT_NE(p, nullptr);
                std::memset(p, 1, size);
                errno = 3;
                free_aligned_sized(p, alignment, size);
                ASSERT_EQ(errno, 3);
            }
        }
    }
    free_aligned_sized(nullptr, 64, 64);
    EXPECT_LT(testing_support::bytes_in_use(), before + (128 << 20));
}

TEST(Names, AllComeFromTheLibrary) {
    SKIP_ON_GLIBC();
    const char* names[] = {"malloc",
                           "free",
                           "calloc",
                           "realloc",
                           "reallocarray",
                           "posix_memalign",
                           "aligned_alloc",
                           "memalign",
                           "valloc",
                           "pvalloc",
                           "cfree",
                           "malloc_usable_size",
                           "free_sized",
                           "free_aligned_sized",
                           "mallinfo",
                           "mallinfo2",
                           "malloc_stats",
                           "malloc_info",
                           "malloc_trim",
                           "mallopt",
                           "_Znwm",
                           "_Znam",
                           "_ZnwmRKSt9nothrow_t",
                           "_ZnamRKSt9nothrow_t",
                           "_ZnwmSt11align_val_t",
                           "_ZnamSt11align_val_t",
                           "_ZnwmSt11align_val_tRKSt9nothrow_t",
                           "_ZnamSt11align_val_tRKSt9nothrow_t",
                           "_ZdlPv",
                           "_ZdaPv",
                           "_ZdlPvm",
                           "_ZdaPvm",
                           "_ZdlPvRKSt9nothrow_t",
                           "_ZdaPvRKSt9nothrow_t",
                           "_ZdlPvSt11align_val_t",
                           "_ZdaPvSt11align_val_t",
                           "_ZdlPvmSt11align_val_t",
                           "_ZdaPvmSt11align_val_t",
                           "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                           "_ZdaPvSt11align_val_tRKSt9nothrow_t"};
    for (const char* name : names) {
        void* address = dlsym(RTLD_DEFAULT, name);
        ASSERT_NE(address, nullptr) << name;
        Dl_info info{};
        ASSERT_NE(dladdr(address, &info), 0);
        EXPECT_NE(std::strstr(info.dli_fname, "libnumalloc"), nullptr) << name << " is " << info.dli_fname;
    }
}

}  // namespace
