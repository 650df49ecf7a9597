// realloc and reallocarray: contents follow, failures leave the block alone.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "api/sizes.h"
#include "check.h"

namespace {

void write_pattern(unsigned char* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(i * 131 + (i >> 8));
}

bool has_pattern(const unsigned char* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
        if (p[i] != static_cast<unsigned char>(i * 131 + (i >> 8))) return false;
    return true;
}

// Called through pointers the compiler cannot see through: it takes any use of a block after a
// realloc for a mistake, also where the test has just made that realloc fail.
void* (*volatile hidden_realloc)(void*, std::size_t) = realloc;
void* (*volatile hidden_reallocarray)(void*, std::size_t, std::size_t) = reallocarray;

TEST(Realloc, OfNullIsMalloc) {
    auto* p = static_cast<unsigned char*>(hidden_realloc(nullptr, 100));
    ASSERT_NE(p, nullptr);
    write_pattern(p, 100);
    free(p);
    void* q = hidden_realloc(nullptr, 0);
    EXPECT_NE(q, nullptr);
    free(q);
}

TEST(Realloc, ToZeroFreesAndGivesNull) {
    // glibc's way, which programs on it rely on. The loop would use 1 GiB if it freed nothing.
    const std::size_t before = testing_support::bytes_in_use();
    for (int i = 0; i < 16384; ++i) {
        void* p = malloc(65536);
        std::memset(p, 1, 65536);
        ASSERT_EQ(hidden_realloc(p, api::opaque(0)), nullptr);
    }
    EXPECT_LT(testing_support::bytes_in_use(), before + (64 << 20));
}

TEST(Realloc, KeepsContentsFromEverySizeToEverySize) {
    const std::size_t sizes[] = {1,      8,      16,      17,      48,      100,     128,     129,
                                 500,    1000,   1024,    1025,    4000,    4096,    5000,    16384,
                                 30000,  32768,  40000,   65536,   100000,  262144,  400000,  524288,
                                 524289, 600000, 1000000, 2097152, 3000000, 4194304, 6000000, 10000000};
    for (std::size_t from : sizes) {
        for (std::size_t to : sizes) {
            auto* p = static_cast<unsigned char*>(malloc(from));
            ASSERT_NE(p, nullptr);
            write_pattern(p, from);
            auto* q = static_cast<unsigned char*>(hidden_realloc(p, to));
            ASSERT_NE(q, nullptr);
            ASSERT_GE(malloc_usable_size(q), to);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(q) % 16, 0u);
            ASSERT_TRUE(has_pattern(q, from < to ? from : to)) << from << " to " << to;
            q[to - 1] = 1;
            free(q);
        }
    }
}

TEST(Realloc, GrowsByteByByteAndBack) {
    unsigned char* p = nullptr;
    for (std::size_t n = 1; n <= 20000; ++n) {
        p = static_cast<unsigned char*>(hidden_realloc(p, n));
        ASSERT_NE(p, nullptr);
        p[n - 1] = static_cast<unsigned char>((n - 1) * 131 + ((n - 1) >> 8));
        if (n % 1000 == 0) {
            ASSERT_TRUE(has_pattern(p, n));
        }
    }
    for (std::size_t n = 20000; n >= 1; n -= 7) {
        p = static_cast<unsigned char*>(hidden_realloc(p, n));
        if (n % 500 < 7) {
            ASSERT_TRUE(has_pattern(p, n));
        }
        if (n < 7) break;
    }
    free(p);
}

TEST(Realloc, GrowsByDoublingToAGibibyteAndShrinksBack) {
    std::size_t n = 16;
    auto* p = static_cast<unsigned char*>(malloc(n));
    auto mark = [](std::size_t i) { return static_cast<unsigned char>(i * 7 + (i >> 12) + (i >> 20)); };
    auto check = [&](std::size_t upto) {
        for (std::size_t i = 0; i < upto; i += i < 4096 ? 1 : 1021) ASSERT_EQ(p[i], mark(i)) << i << " of " << upto;
    };
    auto fill = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) p[i] = mark(i);
    };
    fill(0, n);
    for (; n < (std::size_t{1} << 30); n *= 2) {
        p = static_cast<unsigned char*>(hidden_realloc(p, n * 2));
        ASSERT_NE(p, nullptr) << n * 2;
        check(n);
        // Beyond 64 MiB the whole need not be written: the moved pages are what matters.
        if (n < (std::size_t{64} << 20)) fill(n, n * 2);
        else {
            for (std::size_t i = 0; i < n * 2; i += i < 4096 ? 1 : 1021) p[i] = mark(i);
        }
    }
    for (; n > 16; n /= 2) {
        p = static_cast<unsigned char*>(hidden_realloc(p, n / 2));
        ASSERT_NE(p, nullptr);
        if (n <= (std::size_t{128} << 20)) check(n / 2);
    }
    free(p);
}

// Every move is a copy.
TEST(Realloc, ABlockThatGrowsInSmallStepsSeldomMoves) {
    void* p = malloc(33'000);
    int moves = 0;
    for (std::size_t n = 34'000; n < 130'000; n += 1000) {
        void* const q = realloc(p, n);
        ASSERT_NE(q, nullptr);
        moves += q != p;
        p = q;
    }
    free(p);
    EXPECT_LE(moves, 8) << "a class is 1/9 longer than the one below";
}

TEST(Realloc, OfAlignedBlocksKeepsContents) {
    for (std::size_t alignment : {std::size_t{64}, std::size_t{4096}, std::size_t{32768}, std::size_t{2} << 20}) {
        for (std::size_t from : {std::size_t{40}, std::size_t{5000}, std::size_t{700000}}) {
            for (std::size_t to : {std::size_t{20}, std::size_t{9000}, std::size_t{1500000}}) {
                auto* p = static_cast<unsigned char*>(aligned_alloc(alignment, from));
                ASSERT_NE(p, nullptr);
                write_pattern(p, from);
                p = static_cast<unsigned char*>(hidden_realloc(p, to));
                ASSERT_TRUE(has_pattern(p, from < to ? from : to));
                free(p);
            }
        }
    }
}

TEST(Realloc, FailureLeavesTheBlockAlone) {
    for (std::size_t size : {std::size_t{24}, std::size_t{3000}, std::size_t{100000}, std::size_t{9000000}}) {
        auto* p = static_cast<unsigned char*>(malloc(size));
        write_pattern(p, size);
        const std::size_t usable = malloc_usable_size(p);
        for (std::size_t impossible : api::impossible_sizes()) {
            errno = 0;
            ASSERT_EQ(hidden_realloc(p, impossible), nullptr);
            ASSERT_EQ(errno, ENOMEM);
            errno = 0;
            ASSERT_EQ(hidden_reallocarray(p, impossible, 16), nullptr);
            ASSERT_EQ(errno, ENOMEM);
        }
        EXPECT_EQ(malloc_usable_size(p), usable);
        EXPECT_TRUE(has_pattern(p, size));
        p = static_cast<unsigned char*>(hidden_realloc(p, size * 2));
        EXPECT_TRUE(has_pattern(p, size));
        free(p);
    }
}

TEST(Reallocarray, MultipliesAndRefusesOverflow) {
    auto* p = static_cast<unsigned char*>(hidden_reallocarray(nullptr, 10, 100));
    ASSERT_NE(p, nullptr);
    EXPECT_GE(malloc_usable_size(p), 1000u);
    write_pattern(p, 1000);
    p = static_cast<unsigned char*>(hidden_reallocarray(p, 1000, 100));
    ASSERT_NE(p, nullptr);
    EXPECT_TRUE(has_pattern(p, 1000));
    errno = 0;
    EXPECT_EQ(hidden_reallocarray(p, api::opaque(std::size_t{1} << 33), std::size_t{1} << 31), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(has_pattern(p, 1000));
    free(p);
}

TEST(Realloc, shrinking_a_big_block_in_resident_memory) {
    const long before = testing_support::resident_kib();
    const std::size_t large = std::size_t{256} << 20;
    auto* p = static_cast<unsigned char*>(malloc(large));
    std::memset(p, 3, large);
    p = static_cast<unsigned char*>(hidden_realloc(p, std::size_t{1} << 20));
    malloc_trim(0);
    EXPECT_LT(testing_support::resident_kib() - before, 16 * 1024);
    EXPECT_EQ(p[(1 << 20) - 1], 3);
    free(p);
}

}  // namespace
