// Where memory lies, as far as a machine of any number of nodes can tell: what was written is found, what was not is
// not. That the nodes are the right ones is checked in the lab (tests/numa).
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Whether a kernel with several nodes refuses to tell.
bool refused(long long found) {
    return found == -1 && (errno == EPERM || errno == ENOSYS) && numalloc_node_count() > 1;
}

std::size_t sum(const std::vector<std::size_t>& on) { return std::accumulate(on.begin(), on.end(), std::size_t{0}); }

class Where : public ::testing::Test {
protected:
    std::vector<std::size_t> on_ = std::vector<std::size_t>(1024);
    int nodes_ = 1024;
};

TEST_F(Where, written_pages_are_found_and_others_are_not) {
    // Shared: not on huge pages, also where the system says `always` and madvise() is refused.
    auto* p = static_cast<char*>(mmap(nullptr, 1200 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(p, MAP_FAILED);
    for (std::size_t i = 0; i < 1200; i += 3) p[i * page] = 1;
    const long long found = numalloc_pages_of_range(p, 1200 * page, on_.data(), nodes_);
    if (refused(found)) GTEST_SKIP();
    EXPECT_EQ(found, 400);
    EXPECT_EQ(sum(on_), 400u);
    // Added to what is there.
    EXPECT_EQ(numalloc_pages_of_range(p + page / 2, page, on_.data(), nodes_), 1);
    EXPECT_EQ(sum(on_), 401u);
    // What is not mapped lies nowhere.
    munmap(p + 600 * page, 300 * page);
    EXPECT_EQ(numalloc_pages_of_range(p, 1200 * page, nullptr, 0), 300);
    munmap(p, 1200 * page);
}

TEST_F(Where, sizes_and_edges) {
    char here = 1;
    const long long one = numalloc_pages_of_range(&here, 1, on_.data(), nodes_);
    if (refused(one)) GTEST_SKIP();
    EXPECT_EQ(one, 1);
    EXPECT_EQ(numalloc_pages_of_range(&here, 0, on_.data(), nodes_), 0);
    EXPECT_EQ(numalloc_pages_of_range(nullptr, 0, nullptr, 0), 0);
    EXPECT_EQ(numalloc_pages_of_range(nullptr, page, nullptr, 0), 0);
    EXPECT_EQ(sum(on_), 1u);
    EXPECT_EQ(numalloc_pages_of_range(&here, 1, on_.data(), -5), 1);
    errno = 0;
    EXPECT_EQ(numalloc_pages_of_range(&here, SIZE_MAX, on_.data(), nodes_), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Where, blocks) {
    for (std::size_t n : {std::size_t{10}, std::size_t{5000}, std::size_t{3} << 20}) {
        void* p = malloc(n);
        memset(p, 1, malloc_usable_size(p));
        const long long found = numalloc_pages_of_block(p, on_.data(), nodes_);
        if (!refused(found)) {
            EXPECT_GE(found, static_cast<long long>((n + page - 1) / page));
            EXPECT_LE(found, static_cast<long long>(malloc_usable_size(p) / page + 2));
        }
        errno = 0;
        EXPECT_EQ(numalloc_pages_of_block(static_cast<char*>(p) + 16, on_.data(), nodes_), -1);
        EXPECT_EQ(errno, EINVAL);
        free(p);
    }
    int on_stack = 0;
    for (const void* bad : {static_cast<const void*>(nullptr), static_cast<const void*>(&on_stack)}) {
        errno = 0;
        EXPECT_EQ(numalloc_pages_of_block(bad, on_.data(), nodes_), -1);
        EXPECT_EQ(errno, EINVAL);
    }
}

TEST_F(Where, heaps) {
    int node = -1;
    numalloc_nodes(&node, 1);
    numalloc_heap* heap = numalloc_heap_create(node);
    EXPECT_EQ(numalloc_pages_of_heap(heap, on_.data(), nodes_), 0);
    for (int i = 0; i < 200; ++i) memset(numalloc_heap_malloc(heap, 3000), 1, 3000);
    memset(numalloc_heap_malloc(heap, 1 << 20), 1, 1 << 20);
    const long long found = numalloc_pages_of_heap(heap, on_.data(), nodes_);
    if (!refused(found)) {
        EXPECT_GE(found, static_cast<long long>((200 * 3000 + (1 << 20)) / page));
        EXPECT_LE(found, static_cast<long long>(numalloc_heap_held(heap) / page));
    }
    numalloc_heap_destroy(heap);
}

// Sizes, in place, many at once.

TEST(Blocks, a_good_size_is_what_malloc_gives) {
    for (std::size_t n = 0; n < 3000000; n = n * 5 / 4 + 1) {
        void* p = malloc(n);
        const std::size_t good = numalloc_good_size(n);
        EXPECT_EQ(numalloc_good_size(good), good);
        // Where a free block of a slightly larger size is at hand, a large request gets that.
        if (n <= 32768) {
            EXPECT_EQ(good, malloc_usable_size(p)) << n;
        } else {
            EXPECT_LE(good, malloc_usable_size(p)) << n;
            EXPECT_GE(good * 3 / 2, malloc_usable_size(p)) << n;
        }
        free(p);
    }
    EXPECT_EQ(numalloc_good_size(SIZE_MAX), 0u);
}

TEST(Blocks, are_resized_where_they_are_or_not_at_all) {
    auto* small = static_cast<char*>(malloc(100));
    EXPECT_EQ(numalloc_resize_in_place(small, 100000), malloc_usable_size(small));
    free(small);
    auto* big = static_cast<char*>(malloc(4 << 20));
    memset(big, 5, 4 << 20);
    EXPECT_EQ(numalloc_resize_in_place(big, 1 << 20), std::size_t{1} << 20);
    EXPECT_EQ(malloc_usable_size(big), std::size_t{1} << 20);
    // What it has just left is free.
    const std::size_t now = numalloc_resize_in_place(big, 2 << 20);
    EXPECT_EQ(now, std::size_t{2} << 20);
    EXPECT_EQ(now, malloc_usable_size(big));
    EXPECT_EQ(big[(1 << 20) - 1], 5);
    memset(big, 6, now);
    EXPECT_EQ(numalloc_resize_in_place(big, std::size_t{1} << 60), now);
    // As small as a block of its kind gets.
    const std::size_t least = numalloc_resize_in_place(big, 1000);
    EXPECT_LT(least, std::size_t{1} << 20);
    EXPECT_EQ(least, malloc_usable_size(big));
    EXPECT_EQ(big[1000], 6);
    free(big);
}

TEST(Blocks, many_at_once) {
    for (std::size_t n : {std::size_t{0}, std::size_t{64}, std::size_t{40000}, std::size_t{600000}}) {
        void* blocks[100];
        ASSERT_EQ(numalloc_malloc_batch(n, blocks, 100), 100u);
        for (int i = 0; i < 100; ++i) memset(blocks[i], i, n);
        for (int i = 0; n > 0 && i < 100; ++i) EXPECT_EQ(static_cast<char*>(blocks[i])[n - 1], i);
        free(blocks[7]);
        blocks[7] = nullptr;
        numalloc_free_batch(blocks, 100);
    }
    void* none[3] = {};
    EXPECT_EQ(numalloc_malloc_batch(10, none, 0), 0u);
    errno = 0;
    EXPECT_EQ(numalloc_malloc_batch(SIZE_MAX / 2, none, 3), 0u);
    EXPECT_EQ(errno, ENOMEM);
}

TEST(Blocks, the_papers_names_and_ours_are_one) {
    void* p = numalloc_psm_alloc(100, numalloc_psm_self());
    ASSERT_NE(p, nullptr);
    p = psm_realloc(p, 1000);
    psm_free(p);
    p = psm_aligned_alloc(64, 100, 0);
    p = numalloc_psm_realloc(p, 5);
    numalloc_psm_free(p);
    numalloc_psm_free(numalloc_psm_calloc(1, 1, 0));
    numalloc_psm_free(numalloc_psm_aligned_alloc(32, 1, 0));
    EXPECT_EQ(numalloc_psm_owner_node(0), psm_owner_node(0));
    EXPECT_EQ(numalloc_psm_register(numalloc_psm_self()), 0);
}

}  // namespace
