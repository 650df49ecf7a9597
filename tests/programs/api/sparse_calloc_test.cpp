// calloc writes only where memory may be other than zero: what a program does not use of a large block costs
// it neither memory nor time.
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "check.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

int first_node() {
    int node = -1;
    numalloc_nodes(&node, 1);
    return node;
}

numalloc_heap* own_heap() {
    static numalloc_heap* heap = numalloc_heap_create(first_node());
    return heap;
}

struct Way {
    const char* name;
    void* (*any)(std::size_t);
    void* (*zeroed)(std::size_t);
};
const Way ways[] = {
    {"calloc", [](std::size_t n) { return malloc(n); }, [](std::size_t n) { return calloc(1, n); }},
    {"on node", [](std::size_t n) { return numalloc_malloc_on_node(n, first_node()); },
     [](std::size_t n) { return numalloc_calloc_on_node(1, n, first_node()); }},
    {"heap", [](std::size_t n) { return numalloc_heap_malloc(own_heap(), n); },
     [](std::size_t n) { return numalloc_heap_calloc(own_heap(), 1, n); }},
};

class SparseCalloc : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override {
        if (madvise(nullptr, 0, MADV_DONTNEED) != 0) GTEST_SKIP() << "what was used stays resident here";
    }
    const Way& way() const { return ways[GetParam()]; }
    void use_and_free(std::size_t n) {
        void* p = way().any(n);
        ASSERT_NE(p, nullptr);
        std::memset(p, 0xEE, n);
        free(p);
    }
    // A new block; the memory that it took. A look at one byte in `step`, some 24 pages: a page that was read counts as
    // used.
    static inline const auto usual_step = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) * 24 + 1'699;
    double make(std::size_t n, std::size_t step = usual_step) {
        const long before = testing_support::resident_kib();
        block_ = static_cast<unsigned char*>(way().zeroed(n));
        EXPECT_NE(block_, nullptr);
        for (std::size_t i = 0; block_ != nullptr && i < n; i += step) {
            if (block_[i] == 0) continue;
            ADD_FAILURE() << way().name << ": byte " << i << " of " << n << " is not zero";
            break;
        }
        return static_cast<double>(testing_support::resident_kib() - before) / 1024;
    }

    unsigned char* block_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Ways, SparseCalloc, ::testing::Range(0, 3));

TEST_P(SparseCalloc, beginning_with_what_was_freed) {
    use_and_free(mib);
    EXPECT_LT(make(1024 * mib), 16) << way().name;
    free(block_);
}

TEST_P(SparseCalloc, in_a_hole_of_which_a_part_was_used) {
    void* hole = way().any(300 * mib);
    void* wall = way().any(600 << 10);
    free(hole);
    malloc_trim(0);
    use_and_free(600 << 10);
    EXPECT_LT(make(290 * mib), 16) << way().name;
    free(block_);
    free(wall);
}

// What was freed waits for the next round, which finds it dirty although most of it was never written to.
TEST_P(SparseCalloc, again_and_again) {
    constexpr std::size_t n = 64 * mib;
    for (std::size_t round = 0; round < 10; ++round) {
        EXPECT_LT(make(n), 24) << way().name << ", round " << round;
        block_[round * n / 10 + 77] = 1;
        std::memset(block_ + round * 4 * mib, 0xFF, 2 * mib);
        free(block_);
    }
}

// And where all of it was, all of it is cleared.
TEST_P(SparseCalloc, after_full_use) {
    for (const std::size_t n : {700 << 10, 5 << 20, 40 << 20})
        for (int round = 0; round < 4; ++round) {
            make(n, 1);
            std::memset(block_, 0xFF, n);
            free(block_);
        }
}

}  // namespace
