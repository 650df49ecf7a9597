// Big objects that a realloc resizes.
#include <utility>

#include "heap/program_heaps/any_object.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

class BigObjects : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(1); }
    void TearDown() override { testing::validate_heap(); }
    static void* take(Bytes n) { return process_heap.take_big(NodeId{0}, n, 1); }
    static void give(void* p) { process_heap.give_big(locate(p)); }
    static void* resize(void* p, Bytes to) {
        return resize_object({locate(p), to, {.node = NodeId{0}, .by_lists = true}, true});
    }
    // A whole number of bags and of pages.
    static Bytes step() { return max_of<Bytes>(bag_bytes, os::page_size()); }
    // Two blocks that grow in turn, until the first has room.
    struct Grown {
        void* p;
        Bytes asked;
        void* other;
    };
    static Grown with_room() {
        void* block[2] = {take(2 * MiB), take(2 * MiB)};
        for (Bytes n = 2 * MiB + step(); n < 64 * MiB; n += step()) {
            for (void*& p : block) p = resize(p, n);
            if (bytes_of(locate(block[0])) > n) return {block[0], n, block[1]};
        }
        return {block[0], 0, block[1]};
    }
};

// One step each: in turn, so that neither has free memory behind it.
TEST_F(BigObjects, SmallStepsMoveABlockFewTimes) {
    void* block[2] = {take(600 * KiB), take(600 * KiB)};
    int moves = 0;
    for (Bytes n = 640 * KiB; n <= 16 * MiB; n += step()) {
        for (void*& p : block) {
            void* const q = resize(p, n);
            ASSERT_NE(q, nullptr) << n;
            ASSERT_GE(bytes_of(locate(q)), n);
            moves += std::exchange(p, q) != q ? 1 : 0;
        }
    }
    // From 600 KiB to 16 MiB by 9/8 at a time, and whole bags: 28 times.
    EXPECT_LE(moves, 2 * 32);
    for (void* p : block) give(p);
}

TEST_F(BigObjects, AShrinkGivesRoomBack) {
    auto [p, asked, other] = with_room();
    const Bytes length = bytes_of(locate(p));
    ASSERT_GE(length, asked + 2 * step());
    EXPECT_EQ(resize(p, length - step()), p);
    EXPECT_EQ(bytes_of(locate(p)), length);
    EXPECT_EQ(resize(p, length - 2 * step()), p);
    EXPECT_EQ(bytes_of(locate(p)), length - 2 * step()) << "less than was asked for before";
    EXPECT_EQ(resize(p, 1 * MiB), p);
    EXPECT_EQ(bytes_of(locate(p)), 1 * MiB);
    give(p);
    give(other);
}

// As numalloc_resize_in_place() does.
TEST_F(BigObjects, AnExactSizeInPlaceGivesRoomBack) {
    auto [p, asked, other] = with_room();
    EXPECT_EQ(resize_object({locate(p), asked, {}, true}), p);
    EXPECT_EQ(bytes_of(locate(p)), asked);
    give(p);
    give(other);
}

// Longer than all free runs, so that neither grows in place.
TEST_F(BigObjects, NoRoomForAFirstStepNorForALongOne) {
    void* const first = take(256 * MiB);
    void* const behind = take(300 * MiB);
    void* const once = resize(first, 264 * MiB);
    ASSERT_NE(once, nullptr);
    ASSERT_NE(once, first);
    EXPECT_EQ(bytes_of(locate(once)), 264 * MiB);
    void* const behind_it = take(300 * MiB);
    void* const p = resize(once, 400 * MiB);
    ASSERT_NE(p, nullptr);
    ASSERT_NE(p, once);
    EXPECT_EQ(bytes_of(locate(p)), 400 * MiB);
    for (void* q : {p, behind, behind_it}) give(q);
}

}  // namespace
}  // namespace numalloc
