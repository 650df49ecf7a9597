// The options that switch a mechanism off, to measure what it gains. Each test is a process of its
// own, because a heap starts once: a child that ends with 0 when all holds.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "statistics/gathering.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::release;
using testing::run_on;
using testing::thread_on;

template <class Body>
void in_child(HeapOptions options, Body body) {
    EXPECT_EXIT(
        {
            testing::start_heap(2, options);
            body();
            testing::validate_heap();
            for (unsigned n = 0; n < 2; ++n) {
                for (unsigned c = 1; c < class_count; ++c) {
                    NodeHeap* const node = process_heap.node(NodeId{n});
                    node->of(ClassId{c}).drain(false);
                }
                EXPECT_EQ(Gathering(Gathering::Depth::heaps).of(n).node.small_taken, 0u) << "all is home again";
            }
            std::exit(::testing::Test::HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
}

const ClassId c64 = class_of(64);
std::uint64_t ring(unsigned node) { return process_heap.node(NodeId{node})->of(c64).use().ring; }

// A node-0 object is freed on node 1 and asked for there again.
unsigned region_after_remote_free() {
    void* p = nullptr;
    unsigned region = 9;
    run_on(0, [&] { p = allocate(Bytes{64}); });
    run_on(1, [&] {
        void* const first = allocate(Bytes{64});
        release(p);
        void* const again = allocate(Bytes{64});
        region = process_heap.space().region_of(again);
        EXPECT_EQ(again == p, region == 0);
        release(first);
        release(again);
    });
    return region;
}

TEST(Ablation, OriginFreeOffHandsForeignObjectsOut) {
    in_child({}, [] { EXPECT_EQ(region_after_remote_free(), 1u); });
    HeapOptions off;
    off.ablations.origin_free = false;
    in_child(off, [] {
        EXPECT_EQ(region_after_remote_free(), 0u);
        // Through full, sealed and overflowing lists, checked frees and fast ones.
        std::vector<void*> all;
        run_on(0, [&] {
            for (int i = 0; i < 5000; ++i) all.push_back(allocate(Bytes{16} << i % 8));
        });
        run_on(1, [&] {
            for (int i = 0; i < 5000; ++i) all.push_back(allocate(Bytes{16} << i % 8));
            for (std::size_t i = 0; i < all.size() / 2; ++i) release(all[i]), release(all[all.size() - 1 - i]);
            for (void*& p : all) p = allocate(Bytes{512});
            for (void* p : all) release(p);
        });
    });
}

TEST(Ablation, RemoteBatchingOffSendsEachObjectHome) {
    for (const bool batching : {true, false}) {
        HeapOptions options;
        options.ablations.remote_batching = batching;
        in_child(options, [=] {
            std::vector<void*> all;
            run_on(0, [&] {
                for (int i = 0; i < 1000; ++i) all.push_back(allocate(Bytes{64}));
            });
            run_on(1, [&] {
                const std::uint64_t before = ring(0);
                for (int i = 0; i < 3; ++i) release(all[std::size_t(i)]);
                EXPECT_EQ(ring(0), before + (batching ? 0 : 3));
                for (std::size_t i = 3; i < all.size(); ++i) release(all[i]);
            });
        });
    }
}

TEST(Ablation, HandOverIsTheSizeOfABatch) {
    for (const Bytes bytes : {Bytes{1024}, Bytes{1}, 24 * KiB}) {
        HeapOptions options;
        options.ablations.hand_over = bytes;
        in_child(options, [=] {
            const std::uint32_t batch = bytes == 1024 ? 16 : bytes == 1 ? 2 : shape_of(c64).batch;
            EXPECT_EQ(process_heap.batch(c64), batch);
            // Few objects that are never freed here: the class is dense, and its ring in use.
            run_on(0, [&] {
                std::vector<void*> all;
                for (int i = 0; i < 4000; ++i) all.push_back(allocate(Bytes{64}));
                std::size_t freed = 0;
                while (ring(0) == 0) release(all[freed++]);
                EXPECT_LE(freed, 4U * batch + 4);
                EXPECT_LE(ring(0), batch + 1);
                for (; freed < all.size(); ++freed) release(all[freed]);
            });
        });
    }
}

Address huge_page_of(const void* p) { return address_of(p) / os::huge_page; }

TEST(Ablation, IncrementalSharingOffGivesThreadsAndClassesHugePagesOfTheirOwn) {
    for (const bool sharing : {true, false}) {
        HeapOptions options;
        options.ablations.incremental_sharing = sharing;
        in_child(options, [=] {
            PageHeap& big = process_heap.node(NodeId{0})->pages;
            std::vector<void*> all;
            const auto pages_apart = [&](void* a, void* b) { EXPECT_EQ(huge_page_of(a) != huge_page_of(b), !sharing); };
            run_on(0, [&] {
                all = {allocate(Bytes{64}), allocate(Bytes{128})};
                run_on(0, [&] { all.push_back(allocate(Bytes{64})); });
                pages_apart(all[0], all[1]);
                pages_apart(all[0], all[2]);
                pages_apart(all[1], all[2]);
                // More than a page of a class, with bags that do not fit evenly: none lies on another's page.
                std::vector<void*> own;
                for (const Bytes size : {Bytes{64}, Bytes{1000}, Bytes{33800}, Bytes{400 * KiB}}) {
                    for (Bytes taken = 0; taken < 5 * MiB; taken += size) own.push_back(allocate(size));
                }
                for (void* p : own) EXPECT_TRUE(sharing || huge_page_of(p) != huge_page_of(all[1]));
                for (void* p : own) release(p);
                for (void* p : all) release(p);
            });
            process_heap.purge_all();
            EXPECT_EQ(big.use().small_bags, 0u) << "nothing is kept of a page";
        });
    }
}

}  // namespace
}  // namespace numalloc
