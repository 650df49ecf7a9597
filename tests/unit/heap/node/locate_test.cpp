// What locate() says of every kind of pointer, and what resizing makes of a big object.
#include "heap/node/locate.h"

#include <cstring>

#include "heap/program_heaps/any_object.h"
#include "heap/program_heaps/bound_heap.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;
using testing::run_on;

class Locate : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(2); }
    void TearDown() override { testing::validate_heap(); }
    static void* big(Bytes n, Bytes alignment = 1) { return process_heap.take_big(NodeId{1}, n, alignment); }
    // Looks up what was found, and what is said against it.
    static void expect(Found found, const char* why, const void* p) {
        const Location at = locate(p);
        EXPECT_EQ(at.found, found);
        EXPECT_STREQ(why_invalid(at, p), why);
    }
};

constexpr const char* not_in_use = "is not an allocated object, or was freed already";
constexpr const char* inside = "points inside an object, not at its start";

TEST_F(Locate, ASmallObjectHasItsClass) {
    run_on(1, [] {
        for (const Bytes n : {Bytes{16}, Bytes{1000}, 40 * KiB, small_limit}) {
            auto* const p = static_cast<char*>(allocate(n));
            expect(Found::small, nullptr, p);
            expect(Found::small, inside, p + 8);
            const Location at = locate(p);
            EXPECT_EQ(at.owner, process_heap.opened(NodeId{1}));
            EXPECT_EQ(at.class_id, class_of(n));
            EXPECT_EQ(size_of(at), shape_of(class_of(n)).size);
            EXPECT_EQ(process_heap.node_of(at), NodeId{1});
            release(p);
        }
    });
}

// Before its first object, which begins at the bag's colour, and behind its last one a bag has none.
TEST_F(Locate, ABagsColourAndTailAreNoObjects) {
    run_on(1, [] {
        for (const Bytes n : {Bytes{256}, Bytes{1024}, 10 * KiB, 64 * KiB, 112 * KiB}) {
            void* const p = allocate(n);
            const Location at = locate(p);
            const Region& region = at.owner->pages.region();
            const BagIndex head = region.head_of(at.bag);
            const ClassShape& shape = shape_of(at.class_id);
            char* const start = static_cast<char*>(region.address(head));
            char* const first = reinterpret_cast<char*>(region.first_object(head, at.class_id));
            char* const behind = first + Bytes{shape.objects} * shape.size;
            const auto expect_none = [&](const char* q) {
                expect(Found::small, inside, q);
                EXPECT_FALSE(begins_in_use(locate(q), q)) << n;
            };
            for (Bytes back = 64; back <= first - start; back += 64) expect_none(first - back);
            for (char* q = behind; q < start + Bytes{shape.bags} * bag_bytes; q += 64) expect_none(q);
            release(p);
        }
    });
}

TEST_F(Locate, ABigObjectIsItsFirstBag) {
    auto* const p = static_cast<char*>(big(2 * MiB));
    const Location at = locate(p);
    expect(Found::big, nullptr, p);
    EXPECT_EQ(at.owner->pages.region().address(at.bag), p);
    EXPECT_EQ(size_of(at), 2 * MiB);
    expect(Found::nothing, not_in_use, p + 16);
    expect(Found::nothing, not_in_use, p + bag_bytes);
    expect(Found::nothing, not_in_use, p + 2 * MiB - bag_bytes);
    process_heap.give_big(at);
    expect(Found::nothing, not_in_use, p);
}

TEST_F(Locate, ABoundHeapsRunIsFoundFromAnyOfItsBags) {
    BoundHeap* const heap = BoundHeap::create(NodeId{1});
    auto* const small = static_cast<char*>(heap->allocate(64, 1).p);
    auto* const long_bag = static_cast<char*>(heap->allocate(100 * KiB, 1).p);
    auto* const large = static_cast<char*>(heap->allocate(1 * MiB, 1).p);
    for (const char* p : {small, long_bag, large}) {
        expect(Found::bound, nullptr, p);
        expect(Found::bound, inside, p + 8);
        EXPECT_EQ(BoundHeap::of(locate(p)), heap);
    }
    expect(Found::bound, "was never allocated", small + 64);
    EXPECT_EQ(locate(long_bag + 99 * KiB).bag, locate(long_bag).bag);
    EXPECT_EQ(size_of(locate(long_bag)), shape_of(class_of(100 * KiB)).size);
    EXPECT_EQ(size_of(locate(large)), 1 * MiB);
    heap->destroy();
    for (const char* p : {small, long_bag, large}) expect(Found::nothing, not_in_use, p);
}

TEST_F(Locate, WhatIsNotOursIsToldFromWhatWasNeverUsed) {
    int local = 0;
    expect(Found::foreign, "was not allocated by numalloc", &local);
    expect(Found::foreign, "was not allocated by numalloc", nullptr);
    process_heap.give_big(locate(big(1 * MiB)));
    const Region& region = process_heap.opened(NodeId{1})->pages.region();
    for (const BagIndex b : {BagIndex{0u}, region.first_bag() - 1, BagIndex{region.committed()}, region.end_bag() - 1})
        expect(Found::unused, "was never allocated", region.address(b));
    const void* const interleaved = reinterpret_cast<void*>(process_heap.space().region(2));
    EXPECT_EQ(process_heap.opened(process_heap.interleaved()), nullptr);
    expect(Found::foreign, "was not allocated by numalloc", interleaved);
}

TEST_F(Locate, ABigObjectIsResizedInPlaceWhereItMayStayAndElseTakesItsPagesAlong) {
    const Bytes n = 8 * MiB;
    const NodeId home{1};
    auto* p = static_cast<char*>(big(n));
    const auto resize = [&](Bytes to, bool may_stay, NodeId there) {
        return resize_object({locate(p), to, {.node = there}, may_stay});
    };
    EXPECT_EQ(resize(2 * n, true, home), p);
    EXPECT_EQ(size_of(locate(p)), 2 * n);
    EXPECT_EQ(resize(n, true, NodeId{0}), p);
    EXPECT_EQ(size_of(locate(p)), n);
    std::memset(p, 5, n);
    void* const neighbour = big(1 * MiB);
    EXPECT_EQ(resize(2 * n, true, NodeId{0}), nullptr) << "pages stay on their heap";
    EXPECT_EQ(resize(100, true, home), nullptr) << "as a small object";
    EXPECT_EQ(resize(longest_region + 1, true, home), nullptr);
    auto* const moved = static_cast<char*>(resize(2 * n, true, home));
    ASSERT_NE(moved, nullptr);
    EXPECT_NE(moved, p);
    EXPECT_EQ(locate(p).found, Found::nothing);
    for (Bytes i = 0; i < n; i += 4096) ASSERT_EQ(moved[i], 5);
    for (void* q : {static_cast<void*>(moved), neighbour}) process_heap.give_big(locate(q));
}

}  // namespace
}  // namespace numalloc
