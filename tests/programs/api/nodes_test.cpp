// What a program may ask about the machine, on the machine that the test runs on.
#include <gtest/gtest.h>
#include <numalloc/numalloc.h>
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

std::vector<int> usable() {
    std::vector<int> nodes(static_cast<std::size_t>(numalloc_node_count()));
    EXPECT_EQ(numalloc_nodes(nodes.data(), static_cast<int>(nodes.size())), static_cast<int>(nodes.size()));
    return nodes;
}

TEST(Nodes, are_the_kernels_numbers_ascending) {
    const std::vector<int> nodes = usable();
    ASSERT_GE(nodes.size(), 1u);
    for (std::size_t i = 1; i < nodes.size(); ++i) EXPECT_LT(nodes[i - 1], nodes[i]);
    if (!std::filesystem::exists("/sys/devices/system/node")) return;
    for (int n : nodes) EXPECT_TRUE(std::filesystem::exists("/sys/devices/system/node/node" + std::to_string(n)));
}

TEST(Nodes, writes_no_more_than_there_is_room_for) {
    int nodes[2] = {-7, -7};
    EXPECT_GE(numalloc_nodes(nullptr, 0), 1);
    EXPECT_GE(numalloc_nodes(nodes, 1), 1);
    EXPECT_NE(nodes[0], -7);
    EXPECT_EQ(nodes[1], -7);
    EXPECT_GE(numalloc_nodes(nullptr, -5), 1);
}

TEST(Nodes, distance_is_ten_within_a_node) {
    for (int a : usable())
        for (int b : usable()) EXPECT_EQ(numalloc_distance(a, b) == 10, a == b);
}

TEST(Nodes, unknown_ones_are_refused) {
    const int node = usable()[0];
    cpu_set_t cpus;
    for (int bad : {-1, INT_MIN, INT_MAX, 1023, 100000}) {
        const auto refused = [](auto result) {
            EXPECT_EQ(result, -1);
            EXPECT_EQ(errno, EINVAL);
            errno = 0;
        };
        errno = 0;
        refused(numalloc_distance(bad, node));
        refused(numalloc_distance(node, bad));
        refused(numalloc_node_cpus(bad, sizeof cpus, &cpus));
        refused(numalloc_node_free_memory(bad));
    }
}

TEST(Nodes, cpus_of_all_nodes_are_those_of_the_machine) {
    cpu_set_t mine, sum;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&sum);
    int count = 0;
    for (int n : usable()) {
        cpu_set_t cpus;
        const int here = numalloc_node_cpus(n, sizeof cpus, &cpus);
        ASSERT_GE(here, 0);
        EXPECT_EQ(here, CPU_COUNT(&cpus));
        count += here;
        CPU_OR(&sum, &sum, &cpus);
    }
    EXPECT_EQ(count, CPU_COUNT(&sum)) << "a CPU of two nodes";
    CPU_AND(&sum, &sum, &mine);
    EXPECT_TRUE(CPU_EQUAL(&sum, &mine));
}

TEST(Nodes, a_cpu_set_that_is_too_small_is_refused) {
    char none[1] = {0};
    for (int n : usable()) {
        cpu_set_t cpus;
        if (numalloc_node_cpus(n, sizeof cpus, &cpus) == 0) continue;
        errno = 0;
        EXPECT_EQ(numalloc_node_cpus(n, 0, none), -1);
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST(Nodes, free_memory_is_some_and_no_more_than_all) {
    for (int n : usable()) {
        const long long bytes = numalloc_node_free_memory(n);
        EXPECT_GT(bytes, 0);
        EXPECT_LT(bytes, 1LL << 50);
        // On a busy machine the 100 ms may be over in between: then it is asked again.
        bool from_memory = false;
        for (int i = 0; i < 1000 && !from_memory; ++i) {
            const long long first = numalloc_node_free_memory(n);
            from_memory = numalloc_node_free_memory(n) == first;
        }
        EXPECT_TRUE(from_memory) << "a second question within 100 ms is answered from memory";
    }
}

TEST(Nodes, current_node_has_our_cpu) {
    cpu_set_t cpus;
    ASSERT_GE(numalloc_node_cpus(numalloc_current_node(), sizeof cpus, &cpus), 0);
    // Without rseq and getcpu, aarch64, whose kernel maps no getcpu into programs, knows no CPU.
    if (sched_getcpu() < 0) GTEST_SKIP() << "the system does not say";
    // The thread may be moved in between.
    bool found = false;
    for (int i = 0; i < 100 && !found; ++i) {
        numalloc_node_cpus(numalloc_current_node(), sizeof cpus, &cpus);
        found = CPU_ISSET(sched_getcpu(), &cpus) != 0;
    }
    EXPECT_TRUE(found);
}

TEST(Nodes, node_of_our_memory_and_of_other) {
    for (int n : usable()) {
        for (std::size_t size : {1u, 5000u, 200000u, 5000000u}) {
            auto* p = static_cast<char*>(numalloc_malloc_on_node(size, n));
            ASSERT_NE(p, nullptr);
            EXPECT_EQ(numalloc_node_of(p), n);
            EXPECT_EQ(numalloc_node_of(p + size / 2), n);
            free(p);
        }
    }
    auto* other = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *other = 1;
    errno = 0;
    const int node = numalloc_node_of(other);
    EXPECT_TRUE(node >= 0 || errno == EPERM || errno == ENOSYS) << strerror(errno);
    munmap(other, 4096);
    // Where the kernel does not tell, and there is only one node, the answer is that.
    const int gone = numalloc_node_of(other);
    EXPECT_TRUE(gone < 0 ? errno == ENOENT || errno == EFAULT || node < 0 : numalloc_node_count() == 1)
        << strerror(errno);
}

// The end of the mapping that the address lies in.
char* end_of_mapping(const void* p) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin, end;
        if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2 && reinterpret_cast<unsigned long>(p) >= begin &&
            reinterpret_cast<unsigned long>(p) < end)
            return reinterpret_cast<char*>(end);
    }
    return nullptr;
}

// What somebody else mapped where the heap grows is no memory of ours: a page that was never written has no node.
TEST(Nodes, node_of_a_mapping_that_the_heap_stepped_over) {
    constexpr std::size_t length = std::size_t{3} << 20;
    void* const low = std::malloc(std::size_t{1} << 20);
    void* const obstacle =
        mmap(end_of_mapping(low), length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (obstacle == MAP_FAILED) GTEST_SKIP() << "the heap's end is not free";
    void* const high = std::malloc(std::size_t{64} << 20);
    std::memset(high, 1, 4096);
    ASSERT_GT(high, obstacle);
    errno = 0;
    EXPECT_EQ(numalloc_node_of(static_cast<char*>(obstacle) + length / 2), -1);
    EXPECT_TRUE(errno == ENOENT || errno == EFAULT || errno == EPERM || errno == ENOSYS) << strerror(errno);
    EXPECT_GE(numalloc_node_of(high), 0);
    munmap(obstacle, length);
    std::free(high);
    std::free(low);
}

}  // namespace
