// Heaps of the program's own, through numalloc.h: what every other function makes of their objects.
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

// Hidden from the compiler, which warns of sizes that no object can have.
std::size_t hidden(std::size_t n) {
    volatile std::size_t result = n;
    return result;
}

class Heaps : public ::testing::Test {
protected:
    void SetUp() override {
        numalloc_nodes(&node_, 1);
        heap_ = numalloc_heap_create(node_);
        ASSERT_NE(heap_, nullptr);
    }
    void TearDown() override { numalloc_heap_destroy(heap_); }

    int node_ = -1;
    numalloc_heap* heap_ = nullptr;
};

TEST_F(Heaps, know_their_node_and_what_is_in_them) {
    EXPECT_EQ(numalloc_heap_node(heap_), node_);
    EXPECT_EQ(numalloc_heap_used(heap_), 0u);
    EXPECT_EQ(numalloc_heap_held(heap_), 0u);
    void* p = numalloc_heap_malloc(heap_, 100);
    EXPECT_EQ(numalloc_heap_used(heap_), malloc_usable_size(p));
    EXPECT_GE(numalloc_heap_held(heap_), numalloc_heap_used(heap_));
    EXPECT_EQ(numalloc_node_of(p), node_);
    const struct mallinfo2 before = mallinfo2();
    ASSERT_NE(numalloc_heap_malloc(heap_, 3000000), nullptr);
    EXPECT_GE(mallinfo2().uordblks, before.uordblks + 3000000);
    numalloc_heap_reset(heap_);
    EXPECT_LT(mallinfo2().uordblks, before.uordblks);
    p = numalloc_heap_malloc(heap_, 100);
    free(p);
    EXPECT_EQ(numalloc_heap_used(heap_), 0u);
    EXPECT_NE(numalloc_heap_malloc(heap_, 2000000), nullptr);
    numalloc_heap_reset(heap_);
    EXPECT_EQ(numalloc_heap_used(heap_), 0u);
    EXPECT_EQ(numalloc_heap_held(heap_), 0u);
}

TEST_F(Heaps, objects_are_freed_by_anybody_or_with_the_heap) {
    std::vector<void*> objects;
    for (int i = 0; i < 3000; ++i) {
        const std::size_t n = static_cast<std::size_t>(i) * 37 % 5000 + (i % 100 == 0 ? 600000 : 0);
        void* p = numalloc_heap_malloc(heap_, n);
        ASSERT_NE(p, nullptr);
        ASSERT_GE(malloc_usable_size(p), n);
        memset(p, i, n);
        objects.push_back(p);
    }
    std::thread([&] {
        for (std::size_t i = 0; i < objects.size(); i += 3) free(objects[i]);
    }).join();
    // Late in this thread's life, when its frees are fast.
    for (int i = 0; i < 5000; ++i) free(malloc(64));
    errno = 77;
    for (std::size_t i = 1; i < objects.size(); i += 3) free(objects[i]);
    EXPECT_EQ(errno, 77);
}

TEST_F(Heaps, calloc_reads_as_zero_also_where_objects_were) {
    for (std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{40000}, std::size_t{1000000}})
        for (int i = 0; i < 10; ++i) {
            auto* p = static_cast<char*>(numalloc_heap_calloc(heap_, n, 1));
            ASSERT_NE(p, nullptr);
            for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(p[k], 0);
            memset(p, 1, n);
            if (i % 2 == 0) free(p);
        }
    errno = 0;
    EXPECT_EQ(numalloc_heap_calloc(heap_, hidden(SIZE_MAX / 2), 3), nullptr);
    EXPECT_EQ(errno, ENOMEM);
}

TEST_F(Heaps, aligned_objects) {
    for (std::size_t alignment = 1; alignment <= 1 << 22; alignment *= 2) {
        void* p = numalloc_heap_aligned_alloc(heap_, alignment, 1000);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
        EXPECT_GE(malloc_usable_size(p), 1000u);
        if (alignment % 3 == 1) free(p);
    }
    errno = 0;
    EXPECT_EQ(numalloc_heap_aligned_alloc(heap_, hidden(48), 1000), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Heaps, realloc_keeps_contents_and_heap) {
    auto* p = static_cast<unsigned char*>(numalloc_heap_malloc(heap_, 10));
    memset(p, 5, 10);
    std::size_t least = 10;
    for (std::size_t n : {std::size_t{10}, std::size_t{300}, std::size_t{70000}, std::size_t{700000}, std::size_t{9000000},
                          std::size_t{800000}, std::size_t{100}, std::size_t{12}}) {
        p = static_cast<unsigned char*>(realloc(p, n));
        ASSERT_NE(p, nullptr);
        for (std::size_t i = 0; i < std::min(least, n); ++i) ASSERT_EQ(p[i], 5) << n;
        ASSERT_EQ(numalloc_heap_used(heap_), malloc_usable_size(p)) << n;
        memset(p, 5, n);
        least = n;
    }
    EXPECT_EQ(realloc(p, 0), nullptr);
    EXPECT_EQ(numalloc_heap_used(heap_), 0u);
}

TEST_F(Heaps, realloc_brings_objects_into_the_heap) {
    numalloc_heap* other = numalloc_heap_create(node_);
    for (std::size_t n : {std::size_t{50}, std::size_t{900000}}) {
        auto* p = static_cast<char*>(malloc(n));
        memset(p, 3, n);
        p = static_cast<char*>(numalloc_heap_realloc(other, p, n));
        EXPECT_EQ(numalloc_heap_used(other), malloc_usable_size(p));
        p = static_cast<char*>(numalloc_heap_realloc(heap_, p, n / 2));
        EXPECT_EQ(numalloc_heap_used(other), 0u);
        EXPECT_EQ(numalloc_heap_used(heap_), malloc_usable_size(p));
        EXPECT_EQ(p[n / 2 - 1], 3);
        // On a node, and so out of the heap, too.
        p = static_cast<char*>(numalloc_heap_realloc(heap_, p, n));
        EXPECT_EQ(numalloc_heap_realloc(heap_, p, 0), nullptr);
        EXPECT_EQ(numalloc_heap_used(heap_), 0u);
    }
    EXPECT_NE(numalloc_heap_realloc(other, nullptr, 100), nullptr);
    numalloc_heap_destroy(other);
}

TEST_F(Heaps, errors) {
    errno = 0;
    EXPECT_EQ(numalloc_heap_create(-1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(numalloc_heap_create(INT_MAX), nullptr);
    EXPECT_EQ(errno, EINVAL);
    for (std::size_t n : {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 4}) {
        errno = 0;
        EXPECT_EQ(numalloc_heap_malloc(heap_, hidden(n)), nullptr);
        EXPECT_EQ(errno, ENOMEM);
    }
    void* p = numalloc_heap_malloc(heap_, 600000);
    errno = 0;
    EXPECT_EQ(numalloc_heap_realloc(heap_, p, hidden(SIZE_MAX / 2 + 1)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(realloc(p, hidden(SIZE_MAX / 2 + 1)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    memset(p, 1, 600000);
    errno = 0;
    EXPECT_EQ(numalloc_move(p, node_), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NE(numalloc_heap_malloc(heap_, 0), numalloc_heap_malloc(heap_, 0));
    numalloc_heap_destroy(nullptr);
}

std::size_t resident() {
    FILE* file = fopen("/proc/self/statm", "r");
    long all = 0;
    long pages = 0;
    EXPECT_EQ(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return static_cast<std::size_t>(pages * sysconf(_SC_PAGESIZE));
}

TEST_F(Heaps, memory_returns_when_one_ends) {
    const std::size_t before = resident();  // what earlier tests used may be there still, on each node
    for (int round = 0; round < 300; ++round) {
        numalloc_heap* h = numalloc_heap_create(node_);
        for (int i = 0; i < 100; ++i) memset(numalloc_heap_malloc(h, 100000), 1, 100000);
        numalloc_heap_destroy(h);
    }
    // 3 GB went through; what is held now is what malloc keeps for the next.
    EXPECT_LT(resident(), before + (64 << 20));
}

TEST_F(Heaps, many_heaps_and_threads_and_forks) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) {
                numalloc_heap* own = numalloc_heap_create(node_);
                for (int k = 0; k < 50; ++k) {
                    memset(numalloc_heap_malloc(own, static_cast<std::size_t>(k * 97)), t, 1);
                    free(numalloc_heap_malloc(heap_, static_cast<std::size_t>(k * 13)));
                }
                numalloc_heap_destroy(own);
            }
        });
    for (int i = 0; i < 10; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            free(numalloc_heap_malloc(heap_, 100));
            numalloc_heap* own = numalloc_heap_create(node_);
            numalloc_heap_destroy(own);
            numalloc_heap_destroy(heap_);
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(numalloc_heap_used(heap_), 0u);
}

}  // namespace
