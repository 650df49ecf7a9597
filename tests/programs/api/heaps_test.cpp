// Heaps of the program's own, through numalloc.h: what every other function makes of their objects.
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
    for (std::size_t n : {std::size_t{10}, std::size_t{300}, std::size_t{70000}, std::size_t{700000},
                          std::size_t{9000000}, std::size_t{800000}, std::size_t{100}, std::size_t{12}}) {
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

TEST_F(Heaps, contain_their_own_memory) {
    numalloc_heap* other = numalloc_heap_create(node_);
    for (std::size_t n : {std::size_t{20}, std::size_t{30000}, std::size_t{2000000}}) {
        auto* p = static_cast<char*>(numalloc_heap_malloc(heap_, n));
        EXPECT_EQ(numalloc_heap_contains(heap_, p), 1);
        EXPECT_EQ(numalloc_heap_contains(heap_, p + n - 1), 1);
        EXPECT_EQ(numalloc_heap_contains(other, p), 0);
        void* q = malloc(n);
        EXPECT_EQ(numalloc_heap_contains(heap_, q), 0);
        free(q);
    }
    // A large object all along, also where it has grown in place or was made shorter.
    constexpr std::size_t step = 32 * 1024, most = 100 * step;
    auto* const large = static_cast<char*>(numalloc_heap_malloc(heap_, most));
    memset(large, 1, most);
    for (std::size_t size : {most, 40 * step, 90 * step, 30 * step}) {
        const std::size_t usable = numalloc_resize_in_place(large, size);
        EXPECT_EQ(usable, size);
        for (std::size_t at = 0; at < usable; at += step / 2)
            EXPECT_EQ(numalloc_heap_contains(heap_, large + at), 1) << size << ' ' << at;
        for (std::size_t at = usable; at < most; at += step / 2)
            EXPECT_EQ(numalloc_heap_contains(heap_, large + at), 0) << size << ' ' << at;
    }
    EXPECT_EQ(numalloc_heap_contains(heap_, &other), 0);
    EXPECT_EQ(numalloc_heap_contains(heap_, nullptr), 0);
    numalloc_heap_destroy(other);
}

TEST_F(Heaps, a_limit_holds_and_can_be_raised) {
    numalloc_heap_set_limit(heap_, 1 << 20);
    std::size_t objects = 0;
    errno = 0;
    while (numalloc_heap_malloc(heap_, 1000) != nullptr) ASSERT_LT(++objects, 2000u);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_GT(objects, 900u);
    EXPECT_LE(numalloc_heap_held(heap_), std::size_t{1} << 20);
    errno = 0;
    EXPECT_EQ(numalloc_heap_malloc(heap_, 600000), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    numalloc_heap_set_limit(heap_, 3 << 20);
    void* big = numalloc_heap_malloc(heap_, 1 << 20);
    ASSERT_NE(big, nullptr);
    EXPECT_EQ(realloc(big, 8 << 20), nullptr);
    numalloc_heap_set_limit(heap_, 0);
    EXPECT_EQ(numalloc_heap_malloc(heap_, 1000), nullptr);
    free(big);
    numalloc_heap_reset(heap_);
    EXPECT_EQ(numalloc_heap_malloc(heap_, 1), nullptr);
    numalloc_heap_set_limit(heap_, SIZE_MAX);
    EXPECT_NE(numalloc_heap_malloc(heap_, 9000000), nullptr);
}

TEST_F(Heaps, a_limit_holds_for_many_threads) {
    numalloc_heap_set_limit(heap_, 2 << 20);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 3000; ++i) {
                void* p = numalloc_heap_malloc(heap_, static_cast<std::size_t>(i * 397 % 70000));
                if (i % 3 == t % 3) free(p);
                EXPECT_LE(numalloc_heap_held(heap_), std::size_t{2} << 20);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

TEST_F(Heaps, big_objects_grow_where_they_are) {
    auto* p = static_cast<char*>(numalloc_heap_malloc(heap_, 2 << 20));
    numalloc_resize_in_place(p, 1 << 20);
    EXPECT_EQ(numalloc_heap_used(heap_), std::size_t{1} << 20);
    EXPECT_EQ(realloc(p, 2 << 20), p);
    EXPECT_EQ(numalloc_heap_used(heap_), std::size_t{2} << 20);
}

TEST_F(Heaps, a_visitor_sees_each_object_once) {
    std::vector<void*> objects;
    for (int i = 0; i < 3000; ++i)
        objects.push_back(
            numalloc_heap_malloc(heap_, static_cast<std::size_t>(i) * 37 % 5000 + (i % 500 == 0 ? 600000 : 0)));
    for (std::size_t i = 0; i < objects.size(); i += 3) {
        free(objects[i]);
        objects[i] = nullptr;
    }
    struct Seen {
        std::vector<void*> objects;
        std::size_t bytes = 0;
    } seen;
    seen.objects.reserve(objects.size());
    numalloc_heap_visit(
        heap_,
        [](void* object, std::size_t bytes, void* argument) {
            auto* const s = static_cast<Seen*>(argument);
            s->objects.push_back(object);
            s->bytes += bytes;
            EXPECT_EQ(malloc_usable_size(object), bytes);
        },
        &seen);
    EXPECT_EQ(seen.bytes, numalloc_heap_used(heap_));
    std::erase(objects, nullptr);
    std::sort(objects.begin(), objects.end());
    std::sort(seen.objects.begin(), seen.objects.end());
    EXPECT_EQ(seen.objects, objects);
}

std::size_t resident() {
    FILE* file = fopen("/proc/self/statm", "r");
    long all = 0;
    long pages = 0;
    EXPECT_EQ(fscanf(file, "%ld %ld", &all, &pages), 2);
    fclose(file);
    return static_cast<std::size_t>(pages * sysconf(_SC_PAGESIZE));
}

TEST_F(Heaps, memory_returns_in_resident_memory) {
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
            alarm(300);
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
