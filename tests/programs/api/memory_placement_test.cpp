// The placement levers and the moving calls, as far as a machine of any number of nodes can tell:
// grammar, errors, contents. Where the pages are is checked in the lab (tests/numa).
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "refused.h"

namespace {

int a_node() {
    int node;
    numalloc_nodes(&node, 1);
    return node;
}

void use_all_sizes() {
    for (std::size_t n : {1u, 100u, 5000u, 60000u, 700000u, 5000000u}) {
        auto* p = static_cast<char*>(malloc(n));
        ASSERT_NE(p, nullptr);
        memset(p, 3, n);
        p = static_cast<char*>(realloc(p, n * 2));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(p[n - 1], 3);
        free(p);
    }
}

TEST(ThreadPlacement, every_kind_serves_memory) {
    const std::string node = std::to_string(a_node());
    for (const std::string& text :
         {std::string("local"), std::string("interleave"), "preferred:" + node, "bind:" + node}) {
        ASSERT_EQ(numalloc_set_thread_placement(text.c_str()), 0) << text;
        use_all_sizes();
        std::thread(use_all_sizes).join();
    }
    EXPECT_EQ(numalloc_set_thread_placement(nullptr), 0);
    use_all_sizes();
}

TEST(ThreadPlacement, memory_of_one_placement_is_freed_under_another) {
    std::vector<char*> blocks;
    const std::string node = std::to_string(a_node());
    for (int round = 0; round < 40; ++round) {
        const std::string text[] = {"local", "interleave", "preferred:" + node, "bind:" + node};
        ASSERT_EQ(numalloc_set_thread_placement(text[round % 4].c_str()), 0);
        for (std::size_t n = 16; n < 2000000; n *= 3) {
            blocks.push_back(static_cast<char*>(malloc(n)));
            memset(blocks.back(), round, n);
        }
        if (round % 3 == 2) {
            for (char* p : blocks) free(p);
            blocks.clear();
        }
    }
    for (char* p : blocks) free(p);
    EXPECT_EQ(numalloc_set_thread_placement(nullptr), 0);
}

TEST(ThreadPlacement, other_texts_are_EINVAL_and_change_nothing) {
    for (const char* text : {"", "near", "local ", "preferred", "preferred:", "preferred:-1", "bind:", "bind:0-",
                             "bind:1023-0", "preferred:1023", "bind:1023", "bind:99999"}) {
        errno = 0;
        EXPECT_EQ(numalloc_set_thread_placement(text), -1) << text;
        EXPECT_EQ(errno, EINVAL) << text;
    }
    use_all_sizes();
}

TEST(Move, keeps_contents_and_is_freed_resized_and_moved_again) {
    for (std::size_t n : {std::size_t{600000}, std::size_t{2} << 20, std::size_t{20} << 20}) {
        auto* p = static_cast<char*>(malloc(n));
        memset(p, 9, n);
        if (numalloc_move(p, a_node()) != 0) {
            EXPECT_TRUE(errno == EPERM || errno == ENOSYS) << strerror(errno);
            free(p);
            continue;
        }
        EXPECT_EQ(numalloc_move(p, a_node()), 0);
        EXPECT_EQ(p[0], 9);
        EXPECT_EQ(p[n - 1], 9);
        p = static_cast<char*>(realloc(p, n - 40000));
        p = static_cast<char*>(realloc(p, n * 2));
        EXPECT_EQ(p[n - 40001], 9);
        free(p);
    }
}

TEST(Move, only_big_blocks_can) {
    char on_stack[16];
    void* small = malloc(1000);
    void* medium = malloc(512 << 10);
    auto* big = static_cast<char*>(malloc(3 << 20));
    for (void* bad : {static_cast<void*>(nullptr), static_cast<void*>(on_stack), small, medium,
                      static_cast<void*>(big + 16), static_cast<void*>(big + (1 << 20))}) {
        errno = 0;
        EXPECT_EQ(numalloc_move(bad, a_node()), -1);
        EXPECT_EQ(errno, EINVAL);
    }
    errno = 0;
    EXPECT_EQ(numalloc_move(big, -1), -1);
    EXPECT_EQ(errno, EINVAL);
    free(small);
    free(medium);
    free(big);
    void* volatile gone = big;
    errno = 0;
    EXPECT_EQ(numalloc_move(gone, a_node()), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST(Rehome, the_caller_and_another) {
    EXPECT_EQ(numalloc_rehome_thread(pthread_self(), numalloc_current_node()), 0);
    use_all_sizes();
    std::atomic<bool> leave{false};
    std::atomic<bool> runs{false};
    std::thread other([&] {
        runs = true;
        while (!leave) use_all_sizes();
    });
    // Of one that has not begun nobody knows whether it can be bound.
    while (!runs) sched_yield();
    // The archive does not see threads start: with several nodes it knows only those that have called it.
    errno = 0;
    const bool moved = numalloc_rehome_thread(other.native_handle(), numalloc_current_node()) == 0;
    if (numalloc_nodes(nullptr, 0) > 1 && binding_is_refused()) {
        EXPECT_TRUE(!moved && errno == ENOTSUP) << errno;
    } else {
        EXPECT_TRUE(moved || (std::getenv("NUMALLOC_TEST_ANY") != nullptr && (errno == ESRCH || errno == ENOTSUP)))
            << errno;
    }
    errno = 0;
    EXPECT_EQ(numalloc_rehome_thread(other.native_handle(), 1023), -1);
    EXPECT_EQ(errno, EINVAL);
    leave = true;
    other.join();
}

// Blocks of all kinds, freed in a forked child and in the parent.
TEST(Rehome, fork_with_everything_in_use) {
    std::vector<void*> blocks;
    for (int i = 0; i < 300; ++i) {
        blocks.push_back(numalloc_malloc_interleaved(static_cast<std::size_t>(i * i)));
        blocks.push_back(psm_alloc(static_cast<std::size_t>(i * i), i));
        blocks.push_back(numalloc_malloc_on_node(static_cast<std::size_t>(i * i), a_node()));
    }
    std::atomic<bool> leave{false};
    std::thread busy([&] {
        for (int i = 0; !leave; ++i) psm_free(psm_alloc(static_cast<std::size_t>(16 + i % 5000), i % 9));
    });
    for (int round = 0; round < 20; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            for (void* p : blocks) free(p);
            for (int i = 0; i < 300; ++i) psm_free(psm_alloc(static_cast<std::size_t>(i), i % 5));
            std::thread(use_all_sizes).join();
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        ASSERT_EQ(status, 0);
    }
    leave = true;
    busy.join();
    for (void* p : blocks) free(p);
}

}  // namespace
