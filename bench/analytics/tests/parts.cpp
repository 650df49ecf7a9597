// The data sets of the placement study's programs, and the structures that are theirs.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "analytics/data.h"
#include "analytics/index/art.h"
#include "analytics/index/btree.h"
#include "analytics/index/skip_list.h"
#include "analytics/index/trie.h"
#include "analytics/table.h"

namespace {

using namespace analytics;

constexpr std::uint64_t records = 100'000, groups = 5'000;

std::uint64_t mixed(const std::vector<Record>& of) {
    std::uint64_t hash = 0;
    for (const Record& one : of) hash = bench::scatter(hash ^ one.key) + one.value;
    return hash;
}

class DataSet : public testing::TestWithParam<Keys> {};

TEST_P(DataSet, IsTheSameForASeedAndAnotherForAnother) {
    const auto first = make_records(GetParam(), records, groups, 1);
    EXPECT_EQ(mixed(first), mixed(make_records(GetParam(), records, groups, 1)));
    EXPECT_NE(mixed(first), mixed(make_records(GetParam(), records, groups, 2)));
    for (const Record& one : first) ASSERT_LT(one.key, groups);
}

INSTANTIATE_TEST_SUITE_P(All, DataSet,
                         testing::Values(Keys::moving_cluster, Keys::sequential, Keys::zipf, Keys::uniform));

// Results of two machines can be compared only while these stay.
TEST(Data, IsTheSameOnEachMachine) {
    EXPECT_EQ(mixed(make_records(Keys::moving_cluster, records, groups, 1)), 2960223998521720913u);
    EXPECT_EQ(mixed(make_records(Keys::sequential, records, groups, 1)), 6311391581312340965u);
    EXPECT_EQ(mixed(make_records(Keys::zipf, records, groups, 1)), 11111199777503281459u);
    EXPECT_EQ(mixed(make_records(Keys::uniform, records, groups, 1)), 14963013651322047615u);
    EXPECT_EQ(mixed(make_rows(groups, 1)), 7997927765318815844u);
    EXPECT_EQ(mixed(make_probes(groups, 1)), 1783114103719272201u);
}

TEST(Data, MovingClusterSlidesFromTheFirstKeyToTheLast) {
    const auto made = make_records(Keys::moving_cluster, records, groups, 1);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < records; ++i) {
        const std::uint64_t first = (groups - window) * i / records;
        ASSERT_GE(made[i].key, first);
        ASSERT_LT(made[i].key, first + window);
        seen.insert(made[i].key);
    }
    EXPECT_GT(seen.size(), groups * 95 / 100);  // at both ends keys are rare
}

TEST(Data, SequentialHasASegmentForEachGroup) {
    const auto made = make_records(Keys::sequential, records, groups, 1);
    for (std::uint64_t i = 0; i < records; ++i) ASSERT_EQ(made[i].key, i / (records / groups));
}

TEST(Data, ZipfsKeysAreAsFrequentAsTheRootOfTheirRank) {
    std::vector<double> count(groups);
    for (const Record& one : make_records(Keys::zipf, 500'000, groups, 1)) ++count[one.key];
    EXPECT_NEAR(count[0] / count[3], 2, 0.1);
    EXPECT_NEAR(count[0] / count[99], 10, 1);
    EXPECT_NEAR(count[9] / count[999], 10, 2.5);
}

TEST(Data, JoinsHaveEachRowOnceAndSixteenProbes) {
    std::set<std::uint64_t> keys;
    for (const Record& one : make_rows(groups, 1)) {
        keys.insert(one.key);
        ASSERT_EQ(one.value, payload_of(one.key));
    }
    EXPECT_EQ(keys.size(), groups);
    EXPECT_EQ(*keys.rbegin(), groups - 1);
    const auto probes = make_probes(groups, 1);
    EXPECT_EQ(probes.size(), 16 * groups);
    for (const Record& one : probes) ASSERT_TRUE(keys.contains(one.key));
}

TEST(Data, ThreadsShareEverythingOut) {
    for (const unsigned threads : {1u, 3u, 7u}) {
        EXPECT_EQ(first_of(100, 0, threads), 0u);
        EXPECT_EQ(first_of(100, threads, threads), 100u);
        for (unsigned i = 0; i < threads; ++i) EXPECT_LE(first_of(100, i, threads), first_of(100, i + 1, threads));
    }
}

TEST(JoinDeath, AWrongJoinEndsTheProgram) {
    const auto probes = make_probes(10, 1);
    Joined right;
    for (const Record& probe : probes) right.add(probe.key, payload_of(probe.key), probe.value);
    check_join(probes, {right, {}});
    EXPECT_EXIT(check_join(probes, {{right.pairs - 1, right.sum}}), testing::ExitedWithCode(1),
                "has 159 pairs, not 160");
    EXPECT_EXIT(check_join(probes, {{right.pairs, right.sum + 1}}), testing::ExitedWithCode(1), "pairs are wrong");
}

template <class Kind>
class Index : public testing::Test {
protected:
    // All that are there are found, and what is not is not: beside each key, and anywhere.
    void holds(const std::vector<std::uint64_t>& keys) {
        std::vector<Record> rows(keys.size());
        std::map<std::uint64_t, const Record*> known;
        Kind index;
        EXPECT_EQ(index.find(0), nullptr);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            rows[i] = {keys[i], i};
            if (known.emplace(keys[i], &rows[i]).second) index.insert(&rows[i]);
        }
        const auto expected = [&](std::uint64_t key) { return known.contains(key) ? known[key] : nullptr; };
        bench::Random random(7);
        for (const std::uint64_t key : keys) {
            for (const std::uint64_t asked : {key, key + 1, key - 1, key ^ (std::uint64_t{1} << 40), random.next()}) {
                ASSERT_EQ(index.find(asked), expected(asked)) << asked;
            }
        }
    }
};
using Kinds = testing::Types<Art<Record>, BTreeOfRows<Record>, SkipList<Record>, Trie<Record>>;
TYPED_TEST_SUITE(Index, Kinds);

TYPED_TEST(Index, HoldsDenseKeys) {
    std::vector<std::uint64_t> keys;
    for (const Record& row : make_rows(15'000, 3)) keys.push_back(row.key);
    this->holds(keys);
    std::sort(keys.begin(), keys.end());
    this->holds(keys);
    std::reverse(keys.begin(), keys.end());
    this->holds(keys);
}

TYPED_TEST(Index, HoldsKeysFromAnywhere) {
    bench::Random random(5);
    std::vector<std::uint64_t> keys = {0, ~std::uint64_t{0}, 1, 256, std::uint64_t{1} << 63};
    for (int i = 0; i < 6'000; ++i) keys.push_back(random.next());
    this->holds(keys);
}

// Keys that share some bytes and not others, so that prefixes are long, and are split.
TYPED_TEST(Index, HoldsKeysWithFewBytesThatDiffer) {
    bench::Random random(6);
    std::vector<std::uint64_t> keys;
    for (int i = 0; i < 6'000; ++i) keys.push_back(random.next() & 0x0003000000ff0103);
    for (int i = 0; i < 2'000; ++i) keys.push_back(random.next() & 0x01ff000000ff0303);
    this->holds(keys);
}

TEST(HashTable, GrowsAndIsEmptiedAndFilledAnew) {
    Table<std::uint64_t> table;
    for (int round = 0; round < 2; ++round) {
        for (const Record& one : make_records(Keys::uniform, records, groups, 1)) ++table.at(one.key);
        std::uint64_t sum = 0;
        std::set<std::uint64_t> keys;
        table.each([&](Table<std::uint64_t>::Node* node) {
            sum += node->value;
            EXPECT_TRUE(keys.insert(node->key).second);
            Table<std::uint64_t>::release(node);
        });
        table.forget();
        EXPECT_EQ(sum, records);
    }
}

}  // namespace
