// mallinfo, mallinfo2, malloc_stats, malloc_info, malloc_trim, mallopt: what glibc's callers read.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::vector<void*> allocate(std::size_t total, std::size_t each) {
    std::vector<void*> blocks;
    for (std::size_t done = 0; done < total; done += each) {
        blocks.push_back(malloc(each));
        std::memset(blocks.back(), 1, each);
    }
    return blocks;
}

void release(std::vector<void*>& blocks) {
    for (void* p : blocks) free(p);
    std::vector<void*>().swap(blocks);
}

TEST(Mallinfo2, InUseBytesFollowWhatIsLive) {
    for (std::size_t each : {std::size_t{100}, std::size_t{10000}, std::size_t{3} * mib}) {
        const struct mallinfo2 before = mallinfo2();
        auto blocks = allocate(96 * mib, each);
        const struct mallinfo2 during = mallinfo2();
        release(blocks);
        const struct mallinfo2 after = mallinfo2();
        const auto in_use = [](const struct mallinfo2& info) { return info.uordblks + info.hblkhd; };
        EXPECT_GE(in_use(during), in_use(before) + 90 * mib) << each;
        EXPECT_LE(in_use(during), in_use(before) + 130 * mib) << each;
        // Thread lists may hold some of what was freed.
        EXPECT_LE(in_use(after), in_use(before) + 8 * mib) << each;
        EXPECT_GE(during.arena + during.hblkhd, in_use(during) - during.hblkhd) << each;
        EXPECT_GE(during.arena, during.uordblks) << each;
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(Mallinfo, AgreesWithMallinfo2InAnInt) {
    auto blocks = allocate(8 * mib, 1000);
    const struct mallinfo small = mallinfo();
    const struct mallinfo2 large = mallinfo2();
    EXPECT_NEAR(static_cast<double>(small.uordblks), static_cast<double>(large.uordblks), 1e5);
    EXPECT_NEAR(static_cast<double>(small.arena), static_cast<double>(static_cast<int>(large.arena)), 1e6);
    release(blocks);
}
#pragma GCC diagnostic pop

TEST(MallocTrim, returns_what_can_be_in_resident_memory) {
    malloc_trim(0);
    const long before = testing_support::resident_kib();
    for (std::size_t each : {std::size_t{64}, std::size_t{3000}, std::size_t{200000}, 4 * mib}) {
        auto blocks = allocate(128 * mib, each);
        ASSERT_GT(testing_support::resident_kib(), before + 100 * 1024) << each;
        release(blocks);
        const int result = malloc_trim(0);
        EXPECT_TRUE(result == 0 || result == 1);
        EXPECT_LT(testing_support::resident_kib(), before + 8 * 1024) << each;
    }
}

TEST(MallocTrim, SaysWhetherItReturnedAnything) {
    if (testing_support::any_allocator()) GTEST_SKIP() << "glibc says yes every time";
    auto blocks = allocate(64 * mib, 5000);
    release(blocks);
    EXPECT_EQ(malloc_trim(0), 1);
    EXPECT_EQ(malloc_trim(0), 0) << "nothing was left to return";
}

// As programs under real-time limits set it, before they touch or lock their memory.
TEST(Mallopt, ANegativeTrimThresholdKeepsWhatIsFree) {
    if (testing_support::any_allocator()) GTEST_SKIP() << "glibc wants M_MMAP_MAX as well";
    EXPECT_EQ(mallopt(M_TRIM_THRESHOLD, -1), 1);
    auto blocks = allocate(128 * mib, 1 * mib);
    release(blocks);
    EXPECT_GE(mallinfo2().keepcost, 127 * mib);
    EXPECT_EQ(mallopt(M_TRIM_THRESHOLD, 128 * 1024), 1);
    EXPECT_EQ(malloc_trim(0), 1);
    EXPECT_LT(mallinfo2().keepcost, 32 * mib);
}

TEST(Mallopt, AcceptsGlibcsParameters) {
    EXPECT_EQ(mallopt(M_TRIM_THRESHOLD, 128 * 1024), 1);
    EXPECT_EQ(mallopt(M_TOP_PAD, 64 * 1024), 1);
    EXPECT_EQ(mallopt(M_MMAP_THRESHOLD, 256 * 1024), 1);
    EXPECT_EQ(mallopt(M_MMAP_MAX, 65536), 1);
    EXPECT_EQ(mallopt(M_ARENA_MAX, 2), 1);
    EXPECT_EQ(mallopt(M_ARENA_TEST, 2), 1);
    EXPECT_EQ(mallopt(M_MXFAST, 64), 1);
    EXPECT_EQ(mallopt(12345, 1), 1);
    EXPECT_EQ(mallopt(M_MXFAST, 100000), 0);
    EXPECT_EQ(mallopt(M_MXFAST, -1), 0);
    void* p = malloc(100);
    ASSERT_NE(p, nullptr);
    free(p);
}

// Above the sizes that glibc keeps for a thread, which it does not fill either.
bool fresh_block_is_filled_with(unsigned char byte) {
    constexpr std::size_t size = 5000;
    auto* p = static_cast<unsigned char*>(malloc(size));
    bool filled = true;
    for (std::size_t i = 0; i < size; ++i) filled = filled && p[i] == byte;
    free(p);
    return filled;
}

TEST(Mallopt, SaysYesToPerturbOnlyIfItFills) {
    for (int byte : {0x55, 1}) {
        const bool accepted = mallopt(M_PERTURB, byte) == 1;
        EXPECT_EQ(accepted, fresh_block_is_filled_with(static_cast<unsigned char>(byte ^ 0xff))) << byte;
    }
    EXPECT_EQ(mallopt(M_PERTURB, 0), 1) << "nothing is filled then";
}

TEST(Mallopt, SaysYesToCheckActionOnlyForWhatItDoes) {
    if (testing_support::any_allocator()) GTEST_SKIP() << "glibc says yes to all";
    EXPECT_EQ(mallopt(M_CHECK_ACTION, 3), 1) << "a line and abort(), as the tests of misuse show";
    EXPECT_EQ(mallopt(M_CHECK_ACTION, 7), 1);
    for (int action : {0, 1, 2, 5}) EXPECT_EQ(mallopt(M_CHECK_ACTION, action), 0) << action;
}

TEST(MallocInfo, OptionsOtherThanZeroAreEinval) {
    FILE* file = tmpfile();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(malloc_info(1, file), EINVAL);
    EXPECT_EQ(malloc_info(-1, file), EINVAL);
    EXPECT_EQ(ftell(file), 0);
    fclose(file);
}

TEST(MallocInfo, WritesToTheStreamItIsGiven) {
    // open_memstream grows by realloc while malloc_info writes: it must not hold a lock meanwhile.
    char* text = nullptr;
    std::size_t length = 0;
    FILE* stream = open_memstream(&text, &length);
    EXPECT_EQ(malloc_info(0, stream), 0);
    fclose(stream);
    EXPECT_NE(std::strstr(text, "<malloc version=\"1\">"), nullptr);
    EXPECT_NE(std::strstr(text, "</malloc>"), nullptr);
    free(text);
}

}  // namespace
