// The tree of free runs against std::map, over random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "heap/pages/run_tree.h"

namespace numalloc {
namespace {

class Model {
public:
    explicit Model(std::uint32_t bags) : bags_(bags) { tree_.attach(bags_.data()); }

    void insert(std::uint32_t run, std::uint32_t length) {
        bags_[run].run = length;
        bags_[run].state = BagState::free;
        tree_.insert(BagIndex{run});
        runs_[run] = length;
    }
    void remove(std::uint32_t run) {
        tree_.remove(BagIndex{run});
        runs_.erase(run);
    }
    std::uint32_t expected(std::uint32_t length) const {
        const auto found =
            std::find_if(runs_.begin(), runs_.end(), [=](const auto& run) { return run.second >= length; });
        return found == runs_.end() ? no_bag.value : found->first;
    }
    void check(std::uint32_t length) const {
        ASSERT_EQ(tree_.find(length).value, expected(length)) << "for " << length << " bags";
    }

    void check_from(std::uint32_t length, std::uint32_t from) const {
        auto run = runs_.lower_bound(from);
        while (run != runs_.end() && run->second < length) ++run;
        const std::uint32_t first = run == runs_.end() ? no_bag.value : run->first;
        ASSERT_EQ(tree_.find(length, BagIndex{from}).value, first) << length << " bags from " << from;
        const auto above = runs_.upper_bound(from);
        ASSERT_EQ(tree_.at_or_below(BagIndex{from}).value,
                  above == runs_.begin() ? no_bag.value : std::prev(above)->first);
    }

    const RunTree& tree() const { return tree_; }
    const std::map<std::uint32_t, std::uint32_t>& runs() const { return runs_; }

private:
    std::vector<Bag> bags_;
    RunTree tree_;
    std::map<std::uint32_t, std::uint32_t> runs_;
};

std::uint32_t lowest(const Model& m, std::uint32_t bags) { return m.tree().find(bags).value; }

TEST(RunTree, EmptyHasNothing) {
    Model m(16);
    m.check(1);
    EXPECT_EQ(m.tree().validate(), 0u);
}

TEST(RunTree, TheLowestThatIsLongEnough) {
    Model m(1000);
    m.insert(500, 4);
    m.insert(100, 4);
    m.insert(300, 9);
    m.insert(700, 2);
    EXPECT_EQ(lowest(m, 3), 100u);
    EXPECT_EQ(lowest(m, 4), 100u);
    EXPECT_EQ(lowest(m, 5), 300u);
    EXPECT_EQ(lowest(m, 2), 100u);
    EXPECT_EQ(lowest(m, 10), no_bag.value);
    m.remove(100);
    EXPECT_EQ(lowest(m, 4), 300u);
    m.remove(300);
    EXPECT_EQ(lowest(m, 4), 500u);
    EXPECT_EQ(lowest(m, 5), no_bag.value);
}

// Longer than the three bytes tell exactly in which a subtree says its longest.
TEST(RunTree, RunsOfManyGigabytes) {
    constexpr std::uint32_t rough = 1U << 23;
    constexpr std::uint32_t region = 1U << 29;
    Model m(100);
    m.insert(10, rough + 100);
    m.insert(5, 70'000);
    m.insert(90, rough - 1);
    m.insert(50, region - 1000);
    EXPECT_EQ(m.tree().validate(), 4u);
    for (const std::uint32_t bags : {1u, 65'535u, 65'536u, 70'000u, 70'001u, rough - 1, rough, rough + 64, rough + 101,
                                     region - 1024, region - 999, region})
        m.check(bags);
    EXPECT_EQ(lowest(m, rough + 65), 50u);  // 10 would do, but tells only that it is rough + 64 long
    m.remove(50);
    m.remove(10);
    for (const std::uint32_t bags : {70'001u, rough - 1, rough}) m.check(bags);
}

TEST(RunTree, RandomOperationsAgreeWithASet) {
    std::mt19937 random(7);
    // Few lengths make many equals; many lengths make a deep order.
    for (const std::uint32_t lengths : {1u, 3u, 40u, 100'000u}) {
        Model m(5'000);
        for (int i = 0; i < 30'000; ++i) {
            const std::uint32_t run = 1 + random() % 4'999;
            const std::uint32_t length = 1 + random() % lengths;
            if (m.runs().count(run) != 0) m.remove(run);
            else m.insert(run, length);
            m.check(1 + random() % (lengths + 1));
            m.check_from(1 + random() % (lengths + 1), random() % 5'000);
            if (i % 2000 == 0) {
                ASSERT_EQ(m.tree().validate(), m.runs().size());
            }
        }
        while (!m.runs().empty()) {
            m.remove(m.runs().begin()->first);
            if (m.runs().size() % 500 == 0) {
                ASSERT_EQ(m.tree().validate(), m.runs().size());
            }
        }
        m.check(1);
    }
}

// The priorities are a hash of the index: runs at regular distances, which a program makes, must not
// line up as a list: Fibonacci numbers, which a product with the golden ratio leaves in order, among them.
TEST(RunTree, RegularRunsDoNotDegenerate) {
    for (const std::uint32_t stride : {1u, 2u, 34u, 64u, 233u, 1597u, 4096u}) {
        constexpr std::uint32_t count = 100'000;
        std::vector<Bag> bags(std::size_t{count} * stride > 5'000'000 ? 5'000'000 : count * stride);
        RunTree tree;
        tree.attach(bags.data());
        const std::uint32_t n = static_cast<std::uint32_t>(bags.size() / stride) - 1;
        for (std::uint32_t i = 0; i < n; ++i) {
            bags[(i + 1) * stride].run = 1;
            bags[(i + 1) * stride].state = BagState::free;
            tree.insert(BagIndex{(i + 1) * stride});
        }
        for (std::uint32_t i = 0; i < n; ++i) {
            ASSERT_EQ(tree.find(1).value, (i + 1) * stride);
            tree.remove(BagIndex{(i + 1) * stride});
        }
    }
}

// What a hostile program could free: runs whose priorities fall with the address, so that the tree is a list.
TEST(RunTree, AListOfRunsIsSlowButRight) {
    constexpr std::uint32_t length = 300;
    std::vector<std::uint32_t> chain;
    for (std::uint32_t run = 1; chain.size() < length; ++run) {
        const std::uint64_t band = std::uint64_t{RunTree::priority(BagIndex{run})} * length >> 32;
        if (band == length - 1 - chain.size()) chain.push_back(run);
    }
    Model m(chain.back() + 1);
    for (std::uint32_t i = 0; i < length; ++i) m.insert(chain[i], 1 + i);
    EXPECT_EQ(m.tree().validate(), length);
    for (std::uint32_t i = 1; i < length; i += 7) m.check(i);
    // The longest, at the far end of the list, and others from there on: all that are above look again.
    for (std::uint32_t i = length; i-- > 1;) {
        m.remove(chain[i]);
        m.check(i);
        m.check(i + 1);
        if (i % 50 == 0) {
            ASSERT_EQ(m.tree().validate(), i);
        }
    }
    // And its head in the end, which splits it.
    for (std::uint32_t i = length; i-- > 1;) m.insert(chain[i], length - i);
    m.remove(chain[0]);
    m.insert(chain[0], 1000);
    m.check(length);
    EXPECT_EQ(m.tree().validate(), length);
}

#if defined(NUMALLOC_CHECKS)
TEST(RunTreeDeathTest, ValidateSeesABrokenOrder) {
    std::vector<Bag> bags(100);
    RunTree tree;
    tree.attach(bags.data());
    for (const std::uint32_t run : {10u, 20u, 30u}) {
        bags[run].run = run;
        bags[run].state = BagState::free;
        tree.insert(BagIndex{run});
    }
    bags[20].run = 99;
    EXPECT_DEATH((void)tree.validate(), "assertion failed");
}
#endif

}  // namespace
}  // namespace numalloc
