// The policies and the rule file, asked about machines that do not exist.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "placement/choose_place.h"
#include "placement/rule_file.h"

namespace numalloc::placement {
namespace {

struct Machine {
    explicit Machine(std::vector<std::uint32_t> cpus_of_nodes) {
        for (unsigned n = 0; n < cpus_of_nodes.size(); ++n) {
            table.push_back({0, cpus_of_nodes[n], static_cast<std::uint16_t>(n), NodeId{n}});
            if (cpus_of_nodes[n] > 0) allowed.add(n);
        }
        places = {table.data(), static_cast<unsigned>(table.size())};
    }
    unsigned enter(PlaceId id) {
        ++places[id].threads;
        return id.value;
    }
    void leave(unsigned id) { --table[id].threads; }
    unsigned interleave(unsigned first) { return enter(choose_interleaved(places, allowed, PlaceId{first})); }
    // After one that was there with `threads`, itself included.
    unsigned follow(unsigned place, std::uint32_t threads) {
        return enter(choose_interleaved(places, allowed, PlaceId{0}, {PlaceId{place}, threads}));
    }
    unsigned saturate(unsigned first) { return enter(choose_saturated(places, allowed, PlaceId{first})); }
    std::vector<Place> table;
    Places places;
    PlaceSet allowed;
};

using Numbers = std::vector<unsigned>;

TEST(Interleave, EachNextThreadOnTheNextNode) {
    Machine m({2, 2, 2, 2});
    m.enter(PlaceId{2});  // main
    Numbers got;
    for (int i = 0; i < 9; ++i) got.push_back(m.interleave(2));
    EXPECT_EQ(got, (Numbers{3, 0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(Interleave, SkipsNodesWithoutCpus) {
    Machine m({2, 0, 2, 0});
    m.enter(PlaceId{0});
    Numbers got;
    for (int i = 0; i < 4; ++i) got.push_back(m.interleave(0));
    EXPECT_EQ(got, (Numbers{2, 0, 2, 0}));
}

TEST(Interleave, AThreadFollowsTheOneBeforeItThoughOthersHaveEndedToo) {
    Machine m({2, 2, 2, 2});
    for (unsigned n : {0, 0, 0, 1, 1, 2, 2, 3, 3}) m.enter(PlaceId{n});  // main on 0
    for (unsigned ended : {0, 1, 3, 3}) m.leave(ended);
    EXPECT_EQ(m.follow(0, 3), 0u);  // 3 is lighter, but its threads are to be followed too
    EXPECT_EQ(m.follow(1, 2), 1u);
    EXPECT_EQ(m.follow(3, 2), 3u);
    EXPECT_EQ(m.follow(3, 2), 3u);
}

TEST(Interleave, AThreadDoesNotFollowToANodeThatHasFilledUpSince) {
    Machine m({2, 2, 2, 2});
    for (unsigned n : {0, 1, 1, 2}) m.enter(PlaceId{n});
    EXPECT_EQ(m.follow(1, 2), 3u);
}

TEST(Interleave, AThreadDoesNotFollowWhereOtherNodesHaveEmptied) {
    Machine m({8, 8});
    for (unsigned n : {0, 0, 0, 0}) m.enter(PlaceId{n});
    EXPECT_EQ(m.follow(0, 5), 1u);
}

TEST(Interleave, ATeamStartedAgainFindsTheSameNodes) {
    Machine m({4, 4, 4, 4});
    m.enter(PlaceId{1});
    for (int phase = 0; phase < 3; ++phase) {
        Numbers got;
        for (int i = 0; i < 6; ++i) got.push_back(m.interleave(1));
        EXPECT_EQ(got, (Numbers{2, 3, 0, 1, 2, 3})) << phase;
        for (unsigned n : got) m.leave(n);
    }
}

TEST(Interleave, ShortLivedThreadsDoNotUnbalanceTheRest) {
    Machine m({4, 4, 4, 4});
    m.enter(PlaceId{0});
    for (int i = 0; i < 40; ++i) {
        m.interleave(0);
        m.leave(m.interleave(0));
    }
    for (const Place& place : m.table) EXPECT_NEAR(place.threads, 10, 1);
}

TEST(Interleave, StaysWithinTheAllowed) {
    Machine m({4, 4, 4, 4});
    m.allowed.clear();
    m.allowed.add(1);
    m.allowed.add(3);
    Numbers got;
    for (int i = 0; i < 4; ++i) got.push_back(m.interleave(0));
    EXPECT_EQ(got, (Numbers{1, 3, 1, 3}));
}

TEST(Saturate, FillsANodeThenTheNext) {
    Machine m({2, 0, 3, 1});
    m.enter(PlaceId{2});
    Numbers got;
    for (int i = 0; i < 8; ++i) got.push_back(m.saturate(2));
    EXPECT_EQ(got, (Numbers{2, 2, 3, 0, 0, 2, 2, 2})) << "the second layer begins when all are full";
}

TEST(Saturate, EndedThreadsGiveTheirPlaceBack) {
    Machine m({2, 2});
    m.enter(PlaceId{0});
    for (int i = 0; i < 10; ++i) {
        const unsigned n = m.saturate(0);
        EXPECT_EQ(n, 0u);
        m.leave(n);
    }
}

TEST(Saturate, CountsAllowedCpusOnly) {
    Machine m({1, 8});
    m.enter(PlaceId{0});
    EXPECT_EQ(m.saturate(0), 1u);
}

class Rules : public ::testing::Test {
protected:
    void parse(const char* text) {
        complaints.clear();
        file.parse(text, "rules.txt", machine.places, [](const char* line) { complaints.push_back(line); });
    }
    Numbers nodes(unsigned threads) {
        Numbers result;
        for (unsigned i = 0; i < threads; ++i) result.push_back(file.place_of(i).value);
        return result;
    }
    static constexpr unsigned none = no_place.value;
    Machine machine{{2, 2, 2, 2, 2, 0, 2, 2}};  // node 5 has no CPUs for us
    RuleFile file;
    static std::vector<std::string> complaints;
};
std::vector<std::string> Rules::complaints;

TEST_F(Rules, ThreadsGoToTheirNodesInTurn) {
    parse("# a comment\n0-1 0\n\n  2,4-5\t6-7,1  # main's helpers\r\n");
    EXPECT_EQ(nodes(7), (Numbers{0, 0, 6, none, 7, 1, none}));
    EXPECT_TRUE(complaints.empty());
}

TEST_F(Rules, MoreThreadsThanNodesGoRoundAndTheFirstRuleCounts) {
    parse("1-1000000 2-3\n0-9 7");
    EXPECT_EQ(nodes(5), (Numbers{7, 2, 3, 2, 3}));
    EXPECT_EQ(file.place_of(999999), PlaceId{2});
    EXPECT_EQ(file.place_of(1000001), no_place);
}

TEST_F(Rules, ErrorsNameFileAndLineAndTheRestCounts) {
    parse("0 0\nzero 1\n1\n2 1 extra\n3 9\n4 5\n5-4 1\n6 1,\n7 7");
    EXPECT_EQ(nodes(8), (Numbers{0, none, none, none, none, none, none, 7}));
    ASSERT_EQ(complaints.size(), 7u);
    EXPECT_EQ(complaints[0], "rules.txt:2: expected THREADS NODES, such as 0-3 1; line ignored");
    EXPECT_EQ(complaints[1], "rules.txt:3: expected THREADS NODES, such as 0-3 1; line ignored");
    EXPECT_EQ(complaints[2], "rules.txt:4: too many words; line ignored");
    EXPECT_EQ(complaints[3], "rules.txt:5: node 9 has no CPUs that this process may use; line ignored");
    EXPECT_EQ(complaints[4], "rules.txt:6: node 5 has no CPUs that this process may use; line ignored");
    EXPECT_EQ(complaints[5].substr(0, 12), "rules.txt:7:");
    EXPECT_EQ(complaints[6], "rules.txt:8: expected a list of nodes, such as 0-1,4; line ignored");
}

TEST_F(Rules, AnEmptyFileHasNoRules) {
    parse("");
    EXPECT_EQ(file.place_of(0), no_place);
    parse("\n\n#");
    EXPECT_EQ(file.place_of(0), no_place);
    EXPECT_TRUE(complaints.empty());
}

TEST_F(Rules, AFileThatIsNotThereIsOneComplaint) {
    complaints.clear();
    file.load("/nowhere/rules", machine.places, [](const char* line) { complaints.push_back(line); });
    ASSERT_EQ(complaints.size(), 1u);
    EXPECT_EQ(complaints[0], "/nowhere/rules: cannot be read; threads are interleaved");
}

}  // namespace
}  // namespace numalloc::placement
