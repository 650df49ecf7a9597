// posix_memalign, aligned_alloc, memalign, valloc, pvalloc.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "api/sizes.h"
#include "check.h"

namespace {

// gcc knows that a literal alignment of 3 is wrong and says so; the test wants it said at run time.
using api::opaque;

// From the pointer alone: gcc believes that what aligned_alloc returns is aligned.
bool aligned(const void* p, std::size_t alignment) {
    return opaque(reinterpret_cast<std::uintptr_t>(p)) % alignment == 0;
}

TEST(PosixMemalign, EveryAlignmentTo64MiBAndSizesAroundIt) {
    for (std::size_t alignment = sizeof(void*); alignment <= (std::size_t{64} << 20); alignment *= 2) {
        for (std::size_t size :
             {std::size_t{0}, std::size_t{1}, alignment / 2, alignment - 1, alignment, alignment + 1, alignment * 3,
              std::size_t{100}, std::size_t{5000}, std::size_t{70000}, std::size_t{900000}}) {
            void* blocks[3];
            for (void*& p : blocks) {
                ASSERT_EQ(posix_memalign(&p, alignment, size), 0) << alignment << ' ' << size;
                ASSERT_NE(p, nullptr);
                ASSERT_TRUE(aligned(p, alignment)) << alignment << ' ' << size;
                ASSERT_GE(malloc_usable_size(p), size);
                // The whole of small blocks, the ends of large ones.
                const std::size_t usable = malloc_usable_size(p);
                if (usable <= 100000) {
                    std::memset(p, 0x77, usable);
                } else {
                    std::memset(p, 0x77, 64);
                    std::memset(static_cast<char*>(p) + usable - 64, 0x77, 64);
                }
            }
            ASSERT_NE(blocks[0], blocks[1]);
            for (void* p : blocks) free(p);
        }
    }
}

TEST(PosixMemalign, BadAlignmentsAreEinvalAndTouchNothing) {
    for (std::size_t alignment : {0, 1, 2, 3, 4, 5, 7, 9, 12, 24, 40, 48, 100, 4095, 4097, 65537}) {
        void* p = reinterpret_cast<void*>(0x1234);
        errno = 99;
        EXPECT_EQ(posix_memalign(&p, opaque(alignment), 64), EINVAL) << alignment;
        EXPECT_EQ(p, reinterpret_cast<void*>(0x1234)) << alignment;
        EXPECT_EQ(errno, 99);
    }
    void* p = nullptr;
    EXPECT_EQ(posix_memalign(&p, opaque((SIZE_MAX >> 1) - 7), 64), EINVAL);
}

TEST(PosixMemalign, TooLargeIsEnomem) {
    for (std::size_t size : api::impossible_sizes()) {
        for (std::size_t alignment : {16, 4096, 1 << 21}) {
            void* p = reinterpret_cast<void*>(0x1234);
            errno = 0;
            EXPECT_EQ(posix_memalign(&p, alignment, size), ENOMEM);
            EXPECT_EQ(errno, ENOMEM);  // programs print it by perror()
            EXPECT_EQ(p, reinterpret_cast<void*>(0x1234));
        }
    }
}

TEST(Aligned, HugeAlignmentsGiveAnAlignedBlockOrEnomem) {
    for (int bit = 27; bit < 63; ++bit) {
        const std::size_t alignment = std::size_t{1} << bit;
        void* p = nullptr;
        const int result = posix_memalign(&p, alignment, 100);
        ASSERT_TRUE(result == 0 || result == ENOMEM) << bit;
        if (result == 0) {
            ASSERT_TRUE(aligned(p, alignment));
            std::memset(p, 1, 100);
            free(p);
        }
    }
    errno = 0;
    EXPECT_EQ(aligned_alloc(opaque(std::size_t{1} << 63), 100), nullptr);
    EXPECT_TRUE(errno == ENOMEM || errno == EINVAL);
    errno = 0;
    EXPECT_EQ(memalign(opaque(std::size_t{1} << 62), opaque(std::size_t{1} << 62)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    for (const std::size_t alignment : {PTRDIFF_MAX + std::size_t{0}, (std::size_t{1} << 62) + 1, SIZE_MAX / 2 + 1}) {
        errno = 0;
        EXPECT_EQ(memalign(opaque(alignment), 10), nullptr);
        EXPECT_EQ(errno, ENOMEM) << alignment;
    }
    errno = 0;
    EXPECT_EQ(memalign(opaque(SIZE_MAX / 2 + 2), 10), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST(AlignedAlloc, PowersOfTwoAndAnySize) {
    // C17 and glibc allow sizes that are no multiple of the alignment.
    for (std::size_t alignment = 1; alignment <= (1 << 16); alignment *= 2) {
        for (std::size_t size : {0, 1, 5, 63, 100, 3000, 60000}) {
            void* p = aligned_alloc(alignment, opaque(static_cast<std::size_t>(size)));
            ASSERT_NE(p, nullptr) << alignment;
            ASSERT_TRUE(aligned(p, alignment));
            ASSERT_GE(malloc_usable_size(p), static_cast<std::size_t>(size));
            free(p);
        }
    }
}

TEST(AlignedAlloc, BadAlignmentsAreEinval) {
    if (testing_support::any_allocator()) GTEST_SKIP() << "glibc 2.36 rounds them up; since 2.38 it refuses";
    for (std::size_t alignment : {0, 3, 5, 6, 7, 24, 100, 4097}) {
        errno = 0;
        EXPECT_EQ(aligned_alloc(opaque(alignment), 64), nullptr) << alignment;
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST(Memalign, RefusesOrRoundsUpOddAlignments) {
    // The manual says EINVAL, glibc rounds up: callers may meet either, but never less alignment.
    for (std::size_t alignment : {3, 5, 12, 24, 100, 5000}) {
        errno = 0;
        void* p = memalign(opaque(alignment), 64);
        if (p == nullptr) {
            EXPECT_EQ(errno, EINVAL);
        } else {
            std::size_t power = 1;
            while (power < alignment) power *= 2;
            EXPECT_TRUE(aligned(p, power));
            free(p);
        }
    }
}

TEST(Memalign, GoodAlignments) {
    for (std::size_t alignment = 1; alignment <= (1 << 20); alignment *= 2) {
        void* p = memalign(alignment, 300);
        ASSERT_NE(p, nullptr);
        ASSERT_TRUE(aligned(p, alignment));
        std::memset(p, 1, 300);
        free(p);
    }
}

TEST(Valloc, PageAligned) {
    const auto page = static_cast<std::size_t>(getpagesize());
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1, std::size_t{100000}}) {
        void* p = valloc(opaque(size));
        ASSERT_NE(p, nullptr);
        ASSERT_TRUE(aligned(p, page));
        ASSERT_GE(malloc_usable_size(p), size);
        std::memset(p, 1, size);
        free(p);
    }
    errno = 0;
    EXPECT_EQ(valloc(opaque(SIZE_MAX - 4096)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
}

TEST(Pvalloc, PageAlignedAndWholePages) {
    const auto page = static_cast<std::size_t>(getpagesize());
    for (std::size_t size : {std::size_t{1}, page - 1, page, page + 1, std::size_t{100000}}) {
        void* p = pvalloc(size);
        ASSERT_NE(p, nullptr);
        ASSERT_TRUE(aligned(p, page));
        const std::size_t rounded = (size + page - 1) / page * page;
        ASSERT_GE(malloc_usable_size(p), rounded);
        std::memset(p, 1, rounded);
        free(p);
    }
    void* p = pvalloc(opaque(0));
    EXPECT_NE(p, nullptr);
    EXPECT_TRUE(aligned(p, page));
    free(p);
    for (std::size_t size : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX - 4095, SIZE_MAX - 4096}) {
        errno = 0;
        EXPECT_EQ(pvalloc(opaque(size)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
    }
}

TEST(Aligned, ManyAtOnceDoNotOverlap) {
    testing_support::Random random(12);
    struct Block {
        unsigned char* p;
        std::size_t size;
        unsigned char fill;
    };
    std::vector<Block> blocks;
    for (int i = 0; i < 4000; ++i) {
        const std::size_t alignment = std::size_t{1} << random.below(17);
        const std::size_t size = random.below(20000);
        auto* p = static_cast<unsigned char*>(memalign(alignment, size));
        ASSERT_TRUE(p != nullptr && aligned(p, alignment));
        const auto fill = static_cast<unsigned char>(i);
        std::memset(p, fill, size);
        blocks.push_back({p, size, fill});
        if (i % 3 == 0) {
            const std::size_t victim = random.below(blocks.size());
            ASSERT_TRUE(api::all_bytes(blocks[victim].p, blocks[victim].size, blocks[victim].fill));
            free(blocks[victim].p);
            blocks[victim] = blocks.back();
            blocks.pop_back();
        }
    }
    for (const Block& b : blocks) {
        ASSERT_TRUE(api::all_bytes(b.p, b.size, b.fill));
        free(b.p);
    }
}

// Of these sizes objects with a smaller alignment have other classes.
TEST(Aligned, PagesBesideBlocksOfTheirSize) {
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 400; ++i) {
        const std::size_t size = opaque(std::size_t{2048} << i % 4);
        blocks.push_back(std::malloc(size));
        for (const std::size_t alignment : {128, 2048, 4096}) {
            void* const p = aligned_alloc(opaque(alignment), size);
            ASSERT_TRUE(aligned(p, alignment)) << size << " to " << alignment;
            std::memset(p, 0x33, size);
            blocks.push_back(p);
        }
    }
    for (void* p : blocks) std::free(p);
}

TEST(Aligned, small_requests_of_large_alignment_in_resident_memory) {
    // 1,000 blocks of 64 bytes at an alignment of 16 pages need 16,000 pages of addresses, not of memory.
    const long page = sysconf(_SC_PAGESIZE);
    const long before = testing_support::resident_kib();
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) {
        blocks.push_back(memalign(static_cast<std::size_t>(16 * page), 64));
        std::memset(blocks.back(), 1, 64);
    }
    EXPECT_LT(testing_support::resident_kib() - before, 4000 * page / 1024);
    for (void* p : blocks) free(p);
}

}  // namespace
