#include "os/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <thread>

#include "os/memory.h"
#include "os/numa_policy.h"

// Weak: glibc before 2.35 has none.
extern "C" {
extern const unsigned int __rseq_size __attribute__((weak));
}

namespace numalloc::os {
namespace {

TEST(BitSet, NextWalksOverGapsAndEndsAtTheSize) {
    CpuMask mask;
    EXPECT_EQ(mask.first(), max_cpus);
    mask.add(0);
    mask.add(64);
    mask.add(8191);
    mask.add(8192);  // beyond: ignored
    EXPECT_EQ(mask.count(), 3u);
    EXPECT_EQ(mask.first(), 0u);
    EXPECT_EQ(mask.next(1), 64u);
    EXPECT_EQ(mask.next(65), 8191u);
    EXPECT_EQ(mask.next(8192), max_cpus);
    mask.remove(64);
    EXPECT_FALSE(mask.test(64));
    EXPECT_FALSE(mask.test(9000));
}

TEST(Affinity, AgreesWithLibc) {
    CpuMask ours;
    ASSERT_GT(get_affinity(0, ours), 0);
    cpu_set_t libc;
    ASSERT_EQ(sched_getaffinity(0, sizeof libc, &libc), 0);
    for (unsigned c = 0; c < CPU_SETSIZE; ++c) EXPECT_EQ(ours.test(c), CPU_ISSET(c, &libc)) << c;
}

TEST(Affinity, CurrentCpuIsTheOnlyOneAllowed) {
    CpuMask all;
    ASSERT_GT(get_affinity(0, all), 0);
    const bool has_rseq = &__rseq_size != nullptr && __rseq_size != 0;
    std::thread([&] {
        for (unsigned c = all.first(); c < max_cpus; c = all.next(c + 1)) {
            CpuMask one;
            one.add(c);
            ASSERT_EQ(set_affinity(0, one), 0);
            EXPECT_EQ(current_cpu(), static_cast<int>(c));
            EXPECT_EQ(cpu_at_once(), has_rseq ? static_cast<int>(c) : -1);
        }
    }).join();
}

TEST(Affinity, RefusalsAreNumbersAndErrnoStays) {
    errno = 77;
    EXPECT_EQ(set_affinity(0, CpuMask{}), -EINVAL);
    CpuMask mask;
    EXPECT_EQ(get_affinity(0x3FFFFFFF, mask), -ESRCH);
    current_cpu();
    EXPECT_EQ(errno, 77);
}

TEST(NumaPolicy, BindsToANodeThatExistsOnly) {
    const Bytes bytes = 2 * page_size();
    void* p = map(bytes);
    ASSERT_NE(p, nullptr);
    EXPECT_NE(bind(p, bytes, 1023, BindMode::preferred), 0) << "an error number";
    NodeMask nodes;
    if (task_policy(nodes) == TaskPolicy::none && bind(p, bytes, 0, BindMode::preferred) == 0) {
        *static_cast<volatile char*>(p) = 1;
        const int node = node_of_page(p);
        EXPECT_TRUE(node >= 0 || node == -EPERM || node == -ENOSYS) << node;
    }
    EXPECT_LT(node_of_page(static_cast<char*>(p) + page_size()), 0) << "never written";
    unmap(p, bytes);
}

TEST(NumaPolicy, FreeMemoryOfANodeNobodyKnowsIsUnlimited) {
    EXPECT_EQ(free_bytes_of_node(1023), ~Bytes{0});
    EXPECT_GT(free_bytes_of_node(0), 0u);
}

}  // namespace
}  // namespace numalloc::os
