// malloc, calloc, free, malloc_usable_size: what every caller may rely on.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "api/sizes.h"

namespace {

TEST(Malloc, ZeroGivesDistinctPointersThatCanBeFreed) {
    void* a = malloc(0);
    void* b = malloc(0);
    EXPECT_NE(a, nullptr);
    EXPECT_NE(b, nullptr);
    EXPECT_NE(a, b);
    free(a);
    free(b);
}

TEST(Malloc, EverySizeIsAlignedUsableAndApartFromItsNeighbours) {
    struct Block {
        unsigned char* p;
        std::size_t usable;
        unsigned char fill;
    };
    std::vector<Block> blocks;
    unsigned char fill = 0;
    for (std::size_t size : api::interesting_sizes()) {
        auto* p = static_cast<unsigned char*>(malloc(size));
        ASSERT_NE(p, nullptr) << size;
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0u) << size;
        const std::size_t usable = malloc_usable_size(p);
        ASSERT_GE(usable, size);
        std::memset(p, ++fill, usable);
        blocks.push_back({p, usable, fill});
    }
    for (const Block& b : blocks) {
        ASSERT_TRUE(api::all_bytes(b.p, b.usable, b.fill));
        free(b.p);
    }
}

TEST(Malloc, UsableSizeWastesNoMoreThanAFifthBeyondSmallSizes) {
    malloc_trim(0);  // a longer block that an earlier test has left may serve a request for a block above 32 KiB
    for (std::size_t size = 128; size <= 512 * 1024; size += size / 64 + 1) {
        void* p = malloc(size);
        const double waste = 1.0 - static_cast<double>(size) / static_cast<double>(malloc_usable_size(p));
        EXPECT_LE(waste, 0.20) << size;
        free(p);
    }
}

TEST(Malloc, UsableSizeOfNullIsZero) { EXPECT_EQ(malloc_usable_size(nullptr), 0u); }

TEST(Malloc, UsableSizeDoesNotChangeWhileABlockLives) {
    for (std::size_t size : api::interesting_sizes()) {
        void* p = malloc(size);
        const std::size_t first = malloc_usable_size(p);
        void* q = malloc(size);
        free(q);
        EXPECT_EQ(malloc_usable_size(p), first);
        free(p);
    }
}

TEST(Malloc, TooLargeGivesNullAndEnomem) {
    for (std::size_t size : api::impossible_sizes()) {
        errno = 0;
        EXPECT_EQ(malloc(size), nullptr) << size;
        EXPECT_EQ(errno, ENOMEM) << size;
    }
}

TEST(Malloc, WorksAfterARefusal) {
    for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(malloc(api::opaque(SIZE_MAX)), nullptr);
        void* p = malloc(1000);
        ASSERT_NE(p, nullptr);
        free(p);
    }
}

TEST(Malloc, HundredsOfMebibytesAtOnceCanBeUsed) {
    const std::size_t size = std::size_t{512} << 20;
    auto* p = static_cast<unsigned char*>(malloc(size));
    ASSERT_NE(p, nullptr);
    for (std::size_t i = 0; i < size; i += 1 << 20) p[i] = static_cast<unsigned char>(i >> 20);
    p[size - 1] = 9;
    for (std::size_t i = 0; i < size; i += 1 << 20) ASSERT_EQ(p[i], static_cast<unsigned char>(i >> 20));
    free(p);
}

TEST(Calloc, ClearsWhatWasUsedBeforeAtEverySize) {
    for (std::size_t size : api::interesting_sizes()) {
        // Several blocks, so that the reused memory comes from lists, rings and big blocks alike.
        const int count = size <= 4096 ? 64 : 3;
        std::vector<unsigned char*> blocks;
        for (int i = 0; i < count; ++i) {
            auto* p = static_cast<unsigned char*>(malloc(size));
            std::memset(p, 0xA5, malloc_usable_size(p));
            blocks.push_back(p);
        }
        for (unsigned char* p : blocks) free(p);
        blocks.clear();
        for (int i = 0; i < count; ++i) {
            auto* p = static_cast<unsigned char*>(calloc(1, size));
            ASSERT_NE(p, nullptr);
            ASSERT_TRUE(api::all_bytes(p, size, 0)) << size;
            std::memset(p, 0x5A, size);
            blocks.push_back(p);
        }
        for (unsigned char* p : blocks) free(p);
    }
}

TEST(Calloc, ClearsWhatWasUsedUnderAnotherSize) {
    // Bags and big blocks change class; what calloc believes fresh from the kernel may not be.
    const std::size_t sizes[] = {24, 200, 3000, 20000, 33000, 150000, 400000, 600000, 5000000};
    for (std::size_t dirty : sizes) {
        std::vector<void*> blocks;
        for (std::size_t total = 0; total < (std::size_t{16} << 20); total += dirty) {
            void* p = malloc(dirty);
            std::memset(p, 0xFF, dirty);
            blocks.push_back(p);
        }
        for (void* p : blocks) free(p);
        for (std::size_t clean : sizes) {
            std::vector<unsigned char*> zeroed;
            for (std::size_t total = 0; total < (std::size_t{4} << 20); total += clean)
                zeroed.push_back(static_cast<unsigned char*>(calloc(clean, 1)));
            for (unsigned char* p : zeroed) {
                ASSERT_TRUE(api::all_bytes(p, clean, 0)) << dirty << " then " << clean;
                free(p);
            }
        }
    }
}

TEST(Calloc, ClearsAfterMemoryWentBackToTheSystem) {
    for (std::size_t size : {std::size_t{100}, std::size_t{40000}, std::size_t{3} << 20}) {
        std::vector<void*> blocks;
        for (std::size_t total = 0; total < (std::size_t{32} << 20); total += size) {
            void* p = malloc(size);
            std::memset(p, 0xEE, size);
            blocks.push_back(p);
        }
        for (void* p : blocks) free(p);
        malloc_trim(0);
        for (void*& p : blocks) {
            p = calloc(1, size);
            ASSERT_TRUE(api::all_bytes(static_cast<unsigned char*>(p), size, 0));
        }
        for (void* p : blocks) free(p);
    }
}

TEST(Calloc, OverflowingProductsGiveNullAndEnomem) {
    const std::size_t half = SIZE_MAX / 2 + 1;
    const std::size_t pairs[][2] = {{half, 2},
                                    {2, half},
                                    {SIZE_MAX, SIZE_MAX},
                                    {SIZE_MAX, 2},
                                    {std::size_t{1} << 32, std::size_t{1} << 32},
                                    {SIZE_MAX / 3 + 1, 3},
                                    {SIZE_MAX / 16 + 2, 16},
                                    {PTRDIFF_MAX, 2},
                                    {1, SIZE_MAX},
                                    {SIZE_MAX, 1}};
    for (const auto& pair : pairs) {
        errno = 0;
        EXPECT_EQ(calloc(api::opaque(pair[0]), api::opaque(pair[1])), nullptr);
        EXPECT_EQ(errno, ENOMEM);
    }
}

TEST(Calloc, ZeroMembersOrBytesGiveAPointer) {
    void* a = calloc(0, 8);
    void* b = calloc(8, 0);
    void* c = calloc(0, api::opaque(SIZE_MAX));
    EXPECT_NE(a, nullptr);
    EXPECT_NE(b, nullptr);
    EXPECT_NE(c, nullptr);
    free(a);
    free(b);
    free(c);
}

TEST(Free, NullIsNothing) {
    errno = 77;
    free(nullptr);
    EXPECT_EQ(errno, 77);
}

TEST(Free, KeepsErrnoForEverySize) {
    for (std::size_t size : api::interesting_sizes()) {
        void* p = malloc(size);
        std::memset(p, 1, size);
        errno = 4711;
        free(p);
        ASSERT_EQ(errno, 4711) << size;
    }
}

TEST(Free, KeepsErrnoThroughHundredsOfMebibytes) {
    // Enough for hand-overs, purging and returns to the system, whatever the delay.
    for (std::size_t size :
         {std::size_t{64}, std::size_t{5000}, std::size_t{100000}, std::size_t{1} << 20, std::size_t{64} << 20}) {
        std::vector<void*> blocks;
        for (std::size_t total = 0; total < (std::size_t{128} << 20); total += size) {
            blocks.push_back(malloc(size));
            *static_cast<char*>(blocks.back()) = 1;
        }
        errno = 815;
        for (void* p : blocks) free(p);
        ASSERT_EQ(errno, 815) << size;
    }
}

TEST(Libc, WhatLibcAllocatesCanBeFreedAndGrown) {
    char* copy = strdup("a line of text");
    copy = static_cast<char*>(realloc(copy, 100000));
    EXPECT_STREQ(copy, "a line of text");
    free(copy);

    char* printed = nullptr;
    ASSERT_GT(asprintf(&printed, "%s %d", "number", 42), 0);
    EXPECT_STREQ(printed, "number 42");
    free(printed);

    char* path = realpath("/proc/../proc/self/..", nullptr);
    EXPECT_STREQ(path, "/proc");
    free(path);

    char* buffer = nullptr;
    std::size_t length = 0;
    FILE* stream = open_memstream(&buffer, &length);
    for (int i = 0; i < 10000; ++i) fputs("0123456789", stream);
    fclose(stream);
    EXPECT_EQ(length, 100000u);
    free(buffer);

    // getline grows a block that the program allocated itself.
    char* line = static_cast<char*>(malloc(4));
    std::size_t room = 4;
    FILE* file = fopen("/proc/self/status", "r");
    ASSERT_NE(file, nullptr);
    while (getline(&line, &room, file) > 0) EXPECT_LE(strlen(line), room);
    fclose(file);
    free(line);
}

// A copy of memory that the program never wrote carries what the allocator left there. No free may be taken in by it.
TEST(Malloc, WhatIsCopiedUnwrittenCanBeFreed) {
    for (std::size_t small : {16, 32, 48, 64}) {
        for (std::size_t large : {64, 96, 640, 4096, 40000}) {
            std::vector<unsigned char*> blocks(256 * 1024 / small);
            for (auto& p : blocks) p = static_cast<unsigned char*>(malloc(small));
            for (auto* p : blocks) free(p);
            // Of the same memory, as far as it goes to other sizes.
            blocks.resize(256 * 1024 / large);
            for (auto& p : blocks) p = static_cast<unsigned char*>(malloc(large));
            for (std::size_t shift = 0; shift < 64; shift += 8)
                for (std::size_t i = 1; i < blocks.size(); ++i) {
                    auto* copy = static_cast<unsigned char*>(malloc(large));
                    std::memcpy(copy, blocks[i] + shift % large, large - shift % large);
                    std::memcpy(blocks[i - 1], copy, large);
                    free(copy);
                }
            for (auto* p : blocks) free(p);
        }
    }
}

// A column of a matrix whose rows are blocks, say: lines that lie a multiple of 4 KiB apart share a set of a
// first-level cache, which has 64.
TEST(Malloc, LinesAtTheSamePlaceOfBlocksAreInManyCacheSets) {
    for (const std::size_t bytes : {256, 512, 1024, 1536, 2048, 4096, 8192, 10'240, 16'384, 28'672, 32'768, 40'000,
                                    65'536, 81'920, 100'000, 122'880}) {
        std::vector<void*> blocks(std::max<std::size_t>(128, (std::size_t{1} << 20) / bytes));
        std::set<std::uintptr_t> sets;
        for (void*& b : blocks) {
            b = malloc(bytes);
            ASSERT_NE(b, nullptr);
            sets.insert(reinterpret_cast<std::uintptr_t>(b) / 64 % 64);
        }
        EXPECT_GE(sets.size(), 32u) << bytes;
        for (void* b : blocks) free(b);
    }
}

}  // namespace
