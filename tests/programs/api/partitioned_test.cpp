// Owners: who is one, who is not, and what becomes of their numbers.
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "refused.h"

namespace {

TEST(Psm, main_is_owner_0) {
    EXPECT_EQ(psm_self(), 0);
    EXPECT_GE(psm_owner_node(0), 0);
    void* p = psm_alloc(100, 0);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(numalloc_node_of(p), psm_owner_node(0));
    psm_free(p);
}

TEST(Psm, nobody_owns_these) {
    for (int bad : {-1, INT_MIN, INT_MAX, 65536, 1 << 20}) {
        errno = 0;
        EXPECT_EQ(psm_alloc(100, bad), nullptr) << bad;
        EXPECT_EQ(errno, EINVAL);
        errno = 0;
        EXPECT_EQ(psm_calloc(1, 100, bad), nullptr);
        EXPECT_EQ(errno, EINVAL);
        errno = 0;
        EXPECT_EQ(psm_aligned_alloc(16, 100, bad), nullptr);
        EXPECT_EQ(errno, EINVAL);
        errno = 0;
        EXPECT_EQ(psm_owner_node(bad), -1);
        EXPECT_EQ(errno, EINVAL);
        errno = 0;
        EXPECT_EQ(psm_register(bad), -1);
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST(Psm, the_last_number_and_the_first_are_fine) {
    for (int owner : {65535, 65534, 0, 1}) {
        void* p = psm_alloc(1000, owner);
        ASSERT_NE(p, nullptr) << owner;
        EXPECT_EQ(numalloc_node_of(p), psm_owner_node(owner));
        psm_free(p);
    }
}

TEST(Psm, threads_have_numbers_of_their_own) {
    constexpr int count = 8;
    std::atomic<int> arrived{0};
    int numbers[count];
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            numbers[t] = psm_self();
            EXPECT_EQ(psm_self(), numbers[t]);
            ++arrived;
            while (arrived < count) std::this_thread::yield();
        });
    for (auto& thread : threads) thread.join();
    std::set<int> different(numbers, numbers + count);
    EXPECT_EQ(different.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(different.count(0), 0u) << "0 is main's";
}

TEST(Psm, a_thread_can_choose_its_number) {
    std::thread([] {
        EXPECT_EQ(psm_register(4711), 0);
        EXPECT_EQ(psm_self(), 4711);
        void* p = psm_alloc(100, 4711);
        EXPECT_EQ(numalloc_node_of(p), psm_owner_node(4711));
        if (!binding_is_refused()) {
            EXPECT_EQ(numalloc_node_of(p), numalloc_current_node());
        }
        psm_free(p);
        EXPECT_EQ(psm_register(5), 0);
        EXPECT_EQ(psm_self(), 5);
    }).join();
    EXPECT_EQ(psm_self(), 0);
    // The node of a number stands when its thread has ended.
    EXPECT_GE(psm_owner_node(4711), 0);
}

// JArena's listing 1, in small: each thread's blocks are allocated by its left neighbour.
TEST(Psm, neighbours_allocate_for_each_other) {
    constexpr int count = 6, blocks = 40, rounds = 5;
    std::vector<std::vector<char*>> block(count, std::vector<char*>(blocks));
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, count);
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            ASSERT_EQ(psm_register(t), 0);
            pthread_barrier_wait(&barrier);
            const int right = (t + 1) % count;
            for (int round = 0; round < rounds; ++round) {
                for (int i = 0; i < blocks; ++i) {
                    const std::size_t n = std::size_t{16} << (i % 18);
                    auto* p = static_cast<char*>(psm_alloc(n, right));
                    ASSERT_NE(p, nullptr);
                    EXPECT_EQ(numalloc_node_of(p), psm_owner_node(right));
                    block[static_cast<std::size_t>(right)][static_cast<std::size_t>(i)] = p;
                }
                pthread_barrier_wait(&barrier);
                for (char* p : block[static_cast<std::size_t>(t)]) memset(p, t, malloc_usable_size(p));
                pthread_barrier_wait(&barrier);
                for (char* p : block[static_cast<std::size_t>(right)]) {
                    EXPECT_EQ(p[0], right);
                    psm_free(p);
                }
                pthread_barrier_wait(&barrier);
            }
        });
    for (auto& thread : threads) thread.join();
    pthread_barrier_destroy(&barrier);
}

TEST(Psm, a_forked_child_begins_anew) {
    void* p = psm_alloc(100, 3);
    const pid_t child = fork();
    if (child == 0) {
        if (psm_self() != 0) _exit(1);
        void* q = psm_alloc(100, 3);
        if (q == nullptr || numalloc_node_of(q) != psm_owner_node(3)) _exit(2);
        psm_free(q);
        psm_free(p);
        int in_thread = -1;
        std::thread([&] { in_thread = psm_self(); }).join();
        _exit(in_thread > 0 ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    psm_free(p);
}

// A thread that ends while its lists of other nodes' blocks are full.
TEST(Psm, threads_end_with_full_lists) {
    for (int round = 0; round < 200; ++round)
        std::thread([=] {
            void* blocks[20];
            for (int i = 0; i < 20; ++i) blocks[i] = psm_alloc(static_cast<std::size_t>(16 * (i + 1)), round * 20 + i);
            for (int i = 0; i < 20; i += 2) psm_free(blocks[i]);
            for (int i = 1; i < 20; i += 2) psm_free(blocks[i]);
        }).join();
}

}  // namespace
