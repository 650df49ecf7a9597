// numalloc_statistics() and its kin, options and output while the program runs.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "numalloc/numalloc.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

numalloc_node_statistics all() {
    numalloc_node_statistics s;
    EXPECT_EQ(numalloc_statistics(NUMALLOC_ALL_NODES, &s, sizeof s), 0);
    return s;
}

numalloc_class_statistics of_class(std::size_t size) {
    numalloc_class_statistics s;
    EXPECT_GE(numalloc_statistics_of_class(NUMALLOC_ALL_NODES, size, &s, sizeof s), static_cast<long long>(size));
    return s;
}

TEST(SizeClasses, CountObjectsWithLargeAlignments) {
    for (const std::size_t bytes : {2048, 4096, 20480}) {
        void* blocks[2];
        ASSERT_EQ(posix_memalign(&blocks[0], 1024, bytes), 0);
        const std::size_t size = malloc_usable_size(blocks[0]);
        const auto before = of_class(size).live;
        ASSERT_EQ(posix_memalign(&blocks[1], 1024, bytes), 0);
        EXPECT_EQ(of_class(size).live, before + 1) << bytes;
        for (void* p : blocks) std::free(p);
    }
}

// In the hardened library, whose objects have a tail, too.
TEST(SizeClasses, EachServesUpToTheSizeThatNamesIt) {
    numalloc_class_statistics s;
    long long size = 0;
    int classes = 0;
    for (; (size = numalloc_statistics_of_class(NUMALLOC_ALL_NODES, static_cast<std::size_t>(size) + 1, &s, sizeof s)) >
           0;
         ++classes) {
        const auto n = static_cast<std::size_t>(size);
        const auto before = of_class(n).live;
        void* const p = std::malloc(n);
        EXPECT_GE(malloc_usable_size(p), n);
        if (n <= 30000) {  // a larger size may get a free object of another class
            EXPECT_EQ(malloc_usable_size(p), n);
            EXPECT_EQ(of_class(n).live, before + 1) << n;
        }
        std::free(p);
    }
    EXPECT_EQ(errno, EINVAL);
    EXPECT_GE(classes, 95);  // the hardened library's first class has no room for a tail
}

TEST(Statistics, LiveObjectsAreCountedToTheLast) {
    const auto before = of_class(4096);
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(std::malloc(4096));
    const auto during = of_class(4096);
    EXPECT_EQ(during.live - before.live, 1000u);
    EXPECT_GE(during.fetched - before.fetched + before.lists, 1000u);
    for (int i = 0; i < 400; ++i) std::free(blocks[static_cast<std::size_t>(i)]);
    EXPECT_EQ(of_class(4096).live - before.live, 600u);
    for (int i = 400; i < 1000; ++i) std::free(blocks[static_cast<std::size_t>(i)]);
    const auto after = of_class(4096);
    EXPECT_EQ(after.live, before.live);
    EXPECT_GT(after.lists + after.ring, 0u);
}

// Lists of the thread that frees are not live, whoever allocated.
TEST(Statistics, ObjectsThatAnotherThreadFreedAreNotLive) {
    const auto before = of_class(208);
    std::vector<void*> blocks;
    for (int i = 0; i < 5000; ++i) blocks.push_back(std::malloc(208));
    std::thread([&] {
        for (void* p : blocks) std::free(p);
        EXPECT_EQ(of_class(208).live, before.live);
    }).join();
    EXPECT_EQ(of_class(208).live, before.live);
}

TEST(Statistics, BigObjectsAreCountedAndResident) {
    const auto before = all();
    auto* const p = static_cast<char*>(std::malloc(64 * mib));
    std::memset(p, 1, 64 * mib);
    const auto during = all();
    EXPECT_EQ(during.big_objects - before.big_objects, 1u);
    EXPECT_EQ(during.big_allocations - before.big_allocations, 1u);
    EXPECT_EQ(during.big_bytes - before.big_bytes, 64 * mib);
    EXPECT_GE(during.resident_bytes, before.resident_bytes - before.dirty_bytes + 60 * mib);
    EXPECT_LE(during.huge_bytes, during.resident_bytes);
    std::free(p);
    const auto after = all();
    EXPECT_EQ(after.big_objects, before.big_objects);
    EXPECT_EQ(after.big_allocations - before.big_allocations, 1u);
    EXPECT_GE(after.purged_bytes + after.dirty_bytes, during.purged_bytes + during.dirty_bytes + 60 * mib);
}

TEST(Statistics, NodesAddUp) {
    int nodes[64];
    const int count = numalloc_nodes(nodes, 64);
    unsigned long long sum = 0;
    numalloc_node_statistics s;
    for (int i = 0; i < count; ++i) {
        ASSERT_EQ(numalloc_statistics(nodes[i], &s, sizeof s), 0);
        sum += s.small_bags + s.big_bytes;
    }
    ASSERT_EQ(numalloc_statistics(NUMALLOC_INTERLEAVED, &s, sizeof s), 0);
    if (count > 1) sum += s.small_bags + s.big_bytes;
    const auto whole = all();
    EXPECT_EQ(sum, whole.small_bags + whole.big_bytes);
}

TEST(Statistics, MovedBytesAreThoseThatCameFromElsewhere) {
    int nodes[64];
    if (numalloc_nodes(nodes, 64) < 2) GTEST_SKIP() << "one node";
    auto* const p = static_cast<char*>(numalloc_malloc_on_node(8 * mib, nodes[0]));
    std::memset(p, 1, 8 * mib);
    const auto before = all().moved_bytes;
    ASSERT_EQ(numalloc_move(p, nodes[0]), 0);
    EXPECT_EQ(all().moved_bytes - before, 0u);
    ASSERT_EQ(numalloc_move(p, nodes[1]), 0);
    ASSERT_EQ(numalloc_move(p, nodes[1]), 0);
    EXPECT_EQ(all().moved_bytes - before, 8 * mib);
    ASSERT_EQ(numalloc_move(p, nodes[0]), 0);
    EXPECT_EQ(all().moved_bytes - before, 16 * mib);
    std::free(p);
}

TEST(Statistics, StructsOfOtherVersionsAreServed) {
    struct {
        numalloc_node_statistics known;
        unsigned long long later[4];
    } longer;
    std::memset(&longer, 0xff, sizeof longer);
    ASSERT_EQ(numalloc_statistics(NUMALLOC_ALL_NODES, &longer.known, sizeof longer), 0);
    for (const auto later : longer.later) EXPECT_EQ(later, 0u);
    unsigned long long shorter[2] = {~0ull, ~0ull};
    ASSERT_EQ(
        numalloc_statistics(NUMALLOC_ALL_NODES, reinterpret_cast<numalloc_node_statistics*>(shorter), sizeof *shorter),
        0);
    EXPECT_NE(shorter[0], ~0ull);
    EXPECT_EQ(shorter[1], ~0ull);
}

TEST(Statistics, WhatIsWrongIsSaid) {
    numalloc_node_statistics s;
    numalloc_class_statistics c;
    errno = 0;
    EXPECT_EQ(numalloc_statistics(5000, &s, sizeof s), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_statistics_of_class(NUMALLOC_ALL_NODES, mib, &c, sizeof c), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_statistics_text(static_cast<numalloc_format>(7), nullptr, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_statistics_write("/no/such/folder/file"), -1);
    EXPECT_EQ(errno, ENOENT);
    errno = 0;
    EXPECT_EQ(numalloc_statistics_write(std::string(5000, 'x').c_str()), -1);
    EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST(Statistics, TheTextIsCutAndItsLengthSaid) {
    const long long length = numalloc_statistics_text(NUMALLOC_JSON, nullptr, 0);
    ASSERT_GT(length, 500);
    std::vector<char> whole(static_cast<std::size_t>(length) + 5000, 'x');
    const long long again = numalloc_statistics_text(NUMALLOC_JSON, whole.data(), whole.size());
    EXPECT_EQ(std::strlen(whole.data()), static_cast<std::size_t>(again));
    EXPECT_EQ(std::strncmp(whole.data(), "{\"numalloc\": ", 13), 0);
    char little[10];
    EXPECT_GT(numalloc_statistics_text(NUMALLOC_JSON, little, sizeof little), 500);
    EXPECT_STREQ(little, "{\"numallo");
}

TEST(Options, AreReadAndSet) {
    char text[100];
    EXPECT_EQ(numalloc_option_get("purge_delay", text, sizeof text), 4);
    EXPECT_STREQ(text, "1000");
    EXPECT_EQ(numalloc_option_get("NUMALLOC_THP", text, sizeof text), static_cast<int>(std::strlen(text)));
    EXPECT_EQ(numalloc_option_get("memory_binding", text, 4), 9);
    EXPECT_STREQ(text, "pre");
    errno = 0;
    EXPECT_EQ(numalloc_option_get("colour", text, sizeof text), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_option_set("purge_delay", "soon"), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_option_set("thp", "off"), -1);
    EXPECT_EQ(errno, EPERM);
}

// Freed memory goes back at once with purge_delay=0, and rests with -1.
TEST(Options, PurgeDelayTakesEffect) {
    const auto given_back = [](const char* delay) {
        EXPECT_EQ(numalloc_option_set("purge_delay", delay), 0);
        auto* const p = static_cast<char*>(std::malloc(32 * mib));
        std::memset(p, 1, 32 * mib);
        const auto before = all().purged_bytes;
        std::free(p);
        return all().purged_bytes - before;
    };
    EXPECT_EQ(given_back("-1"), 0u);
    const auto at_once = given_back("0");
    numalloc_process_statistics process;
    ASSERT_EQ(numalloc_statistics_of_process(&process, sizeof process), 0);
    if (process.refused_discards == 0) EXPECT_GE(at_once, 24 * mib);
    else EXPECT_NE(process.refused_discards_error, 0u);
    EXPECT_EQ(numalloc_option_set("purge_delay", "1000"), 0);
}

TEST(Options, PathsThatAreTooLongAreRefused) {
    errno = 0;
    EXPECT_EQ(numalloc_option_set("statistics", std::string(5000, 'x').c_str()), -1);
    EXPECT_EQ(errno, EINVAL);
}

// What is written may become longer while it is.
TEST(Options, MayBeSetWhileStatisticsAreWritten) {
    std::atomic<bool> stop{false};
    std::thread setter([&] {
        std::string longer(4000, '/');
        longer += "dev/null";
        while (!stop) {
            EXPECT_EQ(numalloc_option_set("statistics", "/dev/null"), 0);
            EXPECT_EQ(numalloc_option_set("statistics", longer.c_str()), 0);
        }
    });
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(numalloc_statistics_write("/dev/null"), 0);
    stop = true;
    setter.join();
    EXPECT_EQ(numalloc_option_set("statistics", "none"), 0);
}

// A program's own log has the last words, too.
TEST(Options, LinesGoWhereTheProgramSays) {
    const auto die = [] {
        numalloc_set_output(
            [](const char* line, void* argument) {
                std::fprintf(stderr, "%s: %s\n", static_cast<const char*>(argument), line);
            },
            const_cast<char*>("my log"));
        int x[4];
        std::free(&x[2]);
    };
    EXPECT_DEATH(die(), "^my log: invalid pointer in free\\(");
}

TEST(Version, IsTheHeaders) { EXPECT_EQ(numalloc_version(), NUMALLOC_VERSION); }

}  // namespace
