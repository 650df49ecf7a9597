// Memory with a place, as a program without any knowledge of the machine can check it: contents,
// alignment, errors, and every way out. Where the pages are is checked in the lab (tests/numa).
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t sizes[] = {0,     1,     16,     17,     500,    1024,    1025,   4096,
                                 32768, 32769, 300000, 524288, 524289, 3000000, 9000000};

int a_node() {
    int node;
    numalloc_nodes(&node, 1);
    return node;
}

// The three ways to say where, as functions of a size.
using Allocate = void* (*)(std::size_t);
struct Way {
    const char* name;
    Allocate plain;
    Allocate zeroed;
    void* (*aligned)(std::size_t alignment, std::size_t);
};
const Way ways[] = {
    {"on node", [](std::size_t n) { return numalloc_malloc_on_node(n, a_node()); },
     [](std::size_t n) { return numalloc_calloc_on_node(1, n, a_node()); },
     [](std::size_t a, std::size_t n) { return numalloc_aligned_alloc_on_node(a, n, a_node()); }},
    {"interleaved", [](std::size_t n) { return numalloc_malloc_interleaved(n); },
     [](std::size_t n) { return numalloc_calloc_interleaved(1, n); },
     [](std::size_t a, std::size_t n) { return numalloc_aligned_alloc_interleaved(a, n); }},
    {"psm", [](std::size_t n) { return psm_alloc(n, psm_self()); },
     [](std::size_t n) { return psm_calloc(n, 1, psm_self()); },
     [](std::size_t a, std::size_t n) { return psm_aligned_alloc(a, n, psm_self()); }},
    {"psm for a later thread", [](std::size_t n) { return psm_alloc(n, 7); },
     [](std::size_t n) { return psm_calloc(n, 1, 7); },
     [](std::size_t a, std::size_t n) { return psm_aligned_alloc(a, n, 7); }},
};

TEST(OnNode, blocks_are_usable_and_freed_by_anybody) {
    for (const Way& way : ways)
        for (std::size_t n : sizes) {
            SCOPED_TRACE(way.name + std::string(", ") + std::to_string(n));
            std::vector<char*> blocks;
            for (int i = 0; i < 5; ++i) {
                auto* p = static_cast<char*>(way.plain(n));
                ASSERT_NE(p, nullptr);
                EXPECT_GE(malloc_usable_size(p), n);
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0u);
                memset(p, i, n);
                blocks.push_back(p);
            }
            for (int i = 0; i < 5; ++i)
                for (std::size_t at = 0; at < n; at += n / 2 + 1) EXPECT_EQ(blocks[static_cast<std::size_t>(i)][at], i);
            free(blocks[0]);
            psm_free(blocks[1]);
            std::thread([&] { free(blocks[2]); }).join();
            std::thread([&] { psm_free(blocks[3]); }).join();
            blocks[4] = static_cast<char*>(realloc(blocks[4], 2 * n + 1));
            EXPECT_TRUE(n == 0 || blocks[4][n - 1] == 4);
            free(blocks[4]);
        }
}

TEST(OnNode, calloc_is_zero_also_when_memory_is_reused) {
    for (const Way& way : ways)
        for (std::size_t n : sizes)
            for (int round = 0; round < 3; ++round) {
                auto* p = static_cast<unsigned char*>(way.zeroed(n));
                ASSERT_NE(p, nullptr);
                for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(p[i], 0) << way.name << ' ' << n << " at " << i;
                memset(p, 0xEE, n);
                free(p);
            }
}

TEST(OnNode, alignments) {
    for (const Way& way : ways) {
        for (std::size_t alignment = 1; alignment <= 8u << 20; alignment *= 2)
            for (std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{40000}, std::size_t{600000}}) {
                void* p = way.aligned(alignment, n);
                ASSERT_NE(p, nullptr) << way.name << ' ' << alignment << ' ' << n;
                // The first object of a bag is aligned in any class.
                void* beside = way.aligned(alignment, n);
                for (const void* q : {p, beside}) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(q) % alignment, 0u) << n;
                memset(p, 1, n);
                free(p);
                free(beside);
            }
        for (std::size_t bad : {std::size_t{0}, std::size_t{3}, std::size_t{48}, SIZE_MAX}) {
            errno = 0;
            EXPECT_EQ(way.aligned(bad, 10), nullptr);
            EXPECT_EQ(errno, EINVAL);
        }
    }
}

TEST(OnNode, too_much_is_ENOMEM) {
    for (const Way& way : ways)
        for (std::size_t n : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 + 1, std::size_t{1} << 47}) {
            errno = 0;
            EXPECT_EQ(way.plain(n), nullptr) << way.name << ' ' << n;
            EXPECT_EQ(errno, ENOMEM);
            errno = 0;
            EXPECT_EQ(way.zeroed(n), nullptr);
            EXPECT_EQ(errno, ENOMEM);
            errno = 0;
            EXPECT_EQ(way.aligned(64, n), nullptr);
            EXPECT_EQ(errno, ENOMEM);
        }
    volatile std::size_t half = SIZE_MAX / 2 + 1;
    errno = 0;
    EXPECT_EQ(numalloc_calloc_on_node(half, 2, a_node()), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(psm_calloc(half, 2, 0), nullptr);
    EXPECT_EQ(numalloc_calloc_interleaved(half, 2), nullptr);
    void* p = numalloc_malloc_on_node(100, a_node());
    errno = 0;
    EXPECT_EQ(numalloc_realloc_on_node(p, half, a_node()), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(psm_realloc(p, half), nullptr);
    free(p);
}

TEST(OnNode, unknown_nodes_are_EINVAL) {
    void* p = malloc(10);
    for (int bad : {-1, INT_MIN, INT_MAX, 1023, 1024, 70000}) {
        const auto refused = [](void* result) {
            EXPECT_EQ(result, nullptr);
            EXPECT_EQ(errno, EINVAL);
            errno = 0;
        };
        errno = 0;
        refused(numalloc_malloc_on_node(10, bad));
        refused(numalloc_calloc_on_node(10, 10, bad));
        refused(numalloc_aligned_alloc_on_node(16, 10, bad));
        refused(numalloc_realloc_on_node(nullptr, 10, bad));
        refused(numalloc_realloc_on_node(p, 10, bad));
    }
    free(p);  // still ours
}

TEST(OnNode, realloc_keeps_contents_and_place) {
    const int node = a_node();
    for (std::size_t from : sizes)
        for (std::size_t to : sizes) {
            if (to == 0) continue;
            for (int kind = 0; kind < 4; ++kind) {
                auto* p = static_cast<char*>(kind == 0   ? numalloc_malloc_on_node(from, node)
                                             : kind == 1 ? numalloc_malloc_interleaved(from)
                                             : kind == 2 ? malloc(from)
                                                         : psm_alloc(from, 3));
                memset(p, 7, from);
                p = static_cast<char*>(kind == 3 ? psm_realloc(p, to) : numalloc_realloc_on_node(p, to, node));
                ASSERT_NE(p, nullptr);
                EXPECT_GE(malloc_usable_size(p), to);
                const std::size_t kept = from < to ? from : to;
                if (kept > 0) {
                    EXPECT_EQ(p[0], 7);
                    EXPECT_EQ(p[kept - 1], 7);
                }
                EXPECT_TRUE(kind == 3 || numalloc_node_of(p) == node);
                memset(p, 8, to);
                free(p);
            }
        }
    void* p = numalloc_realloc_on_node(nullptr, 100, node);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(numalloc_realloc_on_node(p, 0, node), nullptr);
    p = psm_realloc(nullptr, 100);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(psm_realloc(p, 0), nullptr);
    psm_free(nullptr);
}

TEST(OnNode, errno_is_left_alone_on_success) {
    errno = 77;
    void* p = numalloc_malloc_on_node(100, a_node());
    void* q = psm_alloc(100, 1);
    void* r = numalloc_malloc_interleaved(3000000);
    numalloc_current_node();
    numalloc_distance(a_node(), a_node());
    psm_self();
    psm_free(p);
    psm_free(q);
    psm_free(r);
    EXPECT_EQ(errno, 77);
}

}  // namespace
