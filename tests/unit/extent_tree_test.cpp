// The tree of free runs against std::set, over random operations.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "heap/node/extent_tree.h"

namespace numalloc {
namespace {

class Model {
public:
    explicit Model(std::uint32_t bags) : bags_(bags) { tree_.attach(bags_.data()); }

    void insert(std::uint32_t run, std::uint32_t length) {
        bags_[run].run = length;
        bags_[run].state = BagState::free;
        tree_.insert(run);
        set_.insert({length, run});
        length_[run] = length;
    }
    void remove(std::uint32_t run) {
        tree_.remove(run);
        set_.erase({length_.at(run), run});
        length_.erase(run);
    }
    // The shortest run that is long enough; of equals the lowest address.
    std::uint32_t expected(std::uint32_t length) const {
        const auto found = set_.lower_bound({length, 0});
        return found == set_.end() ? no_bag : found->second;
    }
    void check(std::uint32_t length) const {
        ASSERT_EQ(tree_.find(length), expected(length)) << "for " << length << " bags";
        ASSERT_EQ(tree_.longest(), longest());
    }
    // Of equally long runs, longest() gives the last.
    std::uint32_t longest() const { return set_.empty() ? no_bag : set_.rbegin()->second; }

    const ExtentTree& tree() const { return tree_; }
    const std::map<std::uint32_t, std::uint32_t>& runs() const { return length_; }

private:
    std::vector<Bag> bags_;
    ExtentTree tree_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> set_;
    std::map<std::uint32_t, std::uint32_t> length_;
};

TEST(ExtentTree, EmptyHasNothing) {
    Model m(16);
    m.check(1);
    EXPECT_EQ(m.tree().validate(), 0u);
}

TEST(ExtentTree, BestFitThenLowestAddress) {
    Model m(1000);
    m.insert(500, 4);
    m.insert(100, 4);
    m.insert(300, 9);
    m.insert(700, 2);
    EXPECT_EQ(m.tree().find(3), 100u);
    EXPECT_EQ(m.tree().find(4), 100u);
    EXPECT_EQ(m.tree().find(5), 300u);
    EXPECT_EQ(m.tree().find(2), 700u);
    EXPECT_EQ(m.tree().find(10), no_bag);
    m.remove(100);
    EXPECT_EQ(m.tree().find(4), 500u);
    EXPECT_EQ(m.tree().longest(), 300u);
}

TEST(ExtentTree, RandomOperationsAgreeWithASet) {
    std::mt19937 random(7);
    // Few lengths make many equals; many lengths make a deep order.
    for (const std::uint32_t lengths : {1u, 3u, 40u, 100'000u}) {
        Model m(20'000);
        for (int i = 0; i < 60'000; ++i) {
            const std::uint32_t run = random() % 20'000;
            const std::uint32_t length = 1 + random() % lengths;
            if (m.runs().count(run) != 0) m.remove(run);
            else m.insert(run, length);
            m.check(1 + random() % (lengths + 1));
            if (i % 2000 == 0) { ASSERT_EQ(m.tree().validate(), m.runs().size()); }
        }
        while (!m.runs().empty()) {
            m.remove(m.runs().begin()->first);
            if (m.runs().size() % 500 == 0) { ASSERT_EQ(m.tree().validate(), m.runs().size()); }
        }
        m.check(1);
    }
}

// The priorities are a hash of the index: runs at regular distances, which a program makes, must
// not line up as a list. A list of 100,000 would take minutes here.
TEST(ExtentTree, RegularRunsDoNotDegenerate) {
    for (const std::uint32_t stride : {1u, 2u, 64u, 4096u}) {
        constexpr std::uint32_t count = 100'000;
        std::vector<Bag> bags(std::size_t{count} * stride > 5'000'000 ? 5'000'000 : count * stride);
        ExtentTree tree;
        tree.attach(bags.data());
        const std::uint32_t n = static_cast<std::uint32_t>(bags.size() / stride);
        for (std::uint32_t i = 0; i < n; ++i) {
            bags[i * stride].run = 1;
            bags[i * stride].state = BagState::free;
            tree.insert(i * stride);
        }
        for (std::uint32_t i = 0; i < n; ++i) {
            ASSERT_EQ(tree.find(1), i * stride);
            tree.remove(i * stride);
        }
    }
}

#if defined(NUMALLOC_CHECKS)
TEST(ExtentTreeDeathTest, ValidateSeesABrokenOrder) {
    std::vector<Bag> bags(100);
    ExtentTree tree;
    tree.attach(bags.data());
    for (const std::uint32_t run : {10u, 20u, 30u}) {
        bags[run].run = run;
        bags[run].state = BagState::free;
        tree.insert(run);
    }
    bags[20].run = 99;
    EXPECT_DEATH((void)tree.validate(), "assertion failed");
}
#endif

}  // namespace
}  // namespace numalloc
