// How many CPUs the threads of a node were seen on.
#include "heap/node/cpus_seen.h"

#include <gtest/gtest.h>

#include <barrier>
#include <climits>
#include <thread>
#include <vector>

namespace numalloc {
namespace {

TEST(CpusSeen, CountsEachOnce) {
    CpusSeen seen;
    EXPECT_EQ(seen.count(), 0u);
    for (const int cpu : {0, 63, 64, 8191, 63, 0}) seen.saw(cpu);
    EXPECT_EQ(seen.count(), 4u);
}

TEST(CpusSeen, UnknownOnesDoNotCount) {
    CpusSeen seen;
    for (const int cpu : {-1, INT_MIN, static_cast<int>(os::max_cpus), INT_MAX}) seen.saw(cpu);
    EXPECT_EQ(seen.count(), 0u);
}

TEST(CpusSeen, AChildForgetsThem) {
    CpusSeen seen;
    for (const int cpu : {3, 70, 8191}) seen.saw(cpu);
    seen.forget();
    EXPECT_EQ(seen.count(), 0u);
    for (const int cpu : {3, 71, 8191}) seen.saw(cpu);
    EXPECT_EQ(seen.count(), 3u);
}

TEST(CpusSeen, ThreadsThatSeeTheSameCountItOnce) {
    for (int round = 0; round < 100; ++round) {
        CpusSeen seen;
        std::barrier start(3);
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&] {
                start.arrive_and_wait();
                for (int cpu = 0; cpu < 130; ++cpu) seen.saw(cpu);
            });
        for (std::thread& t : threads) t.join();
        ASSERT_EQ(seen.count(), 130u);
    }
}

}  // namespace
}  // namespace numalloc
