// The heaps of blocks that the kernel may move between nodes, on a made-up machine. tests/numa/programs/balanced.c has
// the pages.
#include "heap/node/process_heap.h"

#include <vector>

#include "heap/program_heaps/any_object.h"
#include "statistics/gathering.h"
#include "support/made_up_heap.h"

namespace numalloc {
namespace {

constexpr unsigned nodes = 3;
constexpr Bytes large = policy::balancing::from;

class BalancedBlocks : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        HeapOptions options;
        options.kernel_balances = true;
        testing::start_heap(nodes, options);
    }
    void TearDown() override { testing::validate_heap(); }
    static void* block(unsigned node, Bytes n) {
        return process_heap.take_big(process_heap.heap_for_block(NodeId{node}, n), n, 1);
    }
    static void give(void* p) { process_heap.give_big(locate(p)); }
};

TEST_F(BalancedBlocks, OnlyLargeBlocksOfNodesAreBalanced) {
    EXPECT_EQ(process_heap.heaps(), 2 * nodes + 1);
    EXPECT_EQ(process_heap.counted_heaps(), nodes + 1);
    for (unsigned n = 0; n < nodes; ++n) {
        const NodeId node{n};
        EXPECT_EQ(process_heap.heap_for_block(node, large - 1), node);
        const NodeId balanced = process_heap.heap_for_block(node, large);
        EXPECT_GT(balanced.value, process_heap.interleaved().value);
        EXPECT_EQ(process_heap.counted_as(balanced), node);
        EXPECT_EQ(process_heap.counted_as(node), node);
        void* const p = block(n, large);
        const Location at = locate(p);
        EXPECT_EQ(at.owner, process_heap.opened(balanced));
        EXPECT_TRUE(at.owner->balanced);
        EXPECT_EQ(process_heap.node_of(at), node);
        give(p);
    }
    EXPECT_EQ(process_heap.heap_for_block(process_heap.interleaved(), large), process_heap.interleaved());
    EXPECT_EQ(process_heap.counted_as(process_heap.interleaved()), process_heap.interleaved());
}

TEST_F(BalancedBlocks, StatisticsCountThemAsTheirNodes) {
    const auto seen = [] {
        const Gathering gathered(Gathering::Depth::heaps);
        EXPECT_EQ(gathered.heaps(), nodes + 1);
        return std::vector<Bytes>{gathered.of(1).node.big_bytes, gathered.of(2).node.big_bytes,
                                  gathered.of(nodes).node.big_bytes};
    };
    const std::vector<Bytes> before = seen();
    void* const small = process_heap.take_big(NodeId{1}, 1 * MiB, 1);
    void* const p = block(1, large);
    const std::vector<Bytes> after = seen();
    EXPECT_EQ(after[0] - before[0], bytes_of(locate(p)) + bytes_of(locate(small)));
    EXPECT_EQ(after[1], before[1]);
    EXPECT_EQ(after[2], before[2]);
    for (void* q : {p, small}) give(q);
    EXPECT_EQ(seen(), before);
}

TEST_F(BalancedBlocks, AFullOneIsServedByItsNodeAndThenByTheNearest) {
    const Bytes most = testing::test_space.bags - 64 * MiB;
    const auto spills = [] { return process_heap.node(NodeId{0})->spills.load(); };
    const std::uint64_t before = spills();
    std::vector<void*> all;
    for (int i = 0; i < 3; ++i) {
        all.push_back(block(0, most));
        ASSERT_NE(all.back(), nullptr);
    }
    EXPECT_TRUE(locate(all[0]).owner->balanced);
    EXPECT_EQ(locate(all[1]).owner, process_heap.opened(NodeId{0}));
    EXPECT_EQ(locate(all[2]).owner->node, os::topology().nearest(NodeId{0}, 1));
    EXPECT_EQ(spills() - before, 1u);
    for (void* p : all) give(p);
}

TEST_F(BalancedBlocks, ABlockStaysInItsHeapUnlessItsNodeIsNamed) {
    const auto resize = [](void* p, Bytes to, bool may_stay) {
        return resize_object({locate(p), to, {.node = NodeId{2}, .by_lists = may_stay}, may_stay});
    };
    void* p = process_heap.take_big(NodeId{2}, large / 2, 1);
    EXPECT_EQ(resize(p, large, true), p);
    EXPECT_FALSE(process_heap.may_stray(locate(p)));
    give(p);
    p = block(2, large);
    EXPECT_TRUE(process_heap.may_stray(locate(p)));
    EXPECT_EQ(resize(p, 2 * large, true), p);
    EXPECT_EQ(resize(p, large / 4, true), p);
    EXPECT_EQ(resize(p, large / 2, false), nullptr) << "a copy takes it to the node's other heap";
    give(p);
}

}  // namespace
}  // namespace numalloc
