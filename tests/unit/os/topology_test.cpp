#include "os/topology.h"

#include <gtest/gtest.h>

#include "support/made_up_machine.h"

namespace numalloc::os {
namespace {

using numalloc::testing::MadeUpMachine;

std::vector<unsigned> os_nodes(const Topology& t) {
    std::vector<unsigned> result;
    for (unsigned n = 0; n < t.nodes(); ++n) result.push_back(t.os_node(NodeId{n}));
    return result;
}

std::vector<unsigned> by_distance(const Topology& t, unsigned from) {
    std::vector<unsigned> result;
    for (unsigned k = 0; k < t.nodes(); ++k) result.push_back(t.nearest(NodeId{from}, k).value);
    return result;
}

std::vector<unsigned> cpus(const Topology& t, unsigned node) {
    CpuMask mask;
    t.cpus_of(NodeId{node}, mask);
    std::vector<unsigned> result;
    for (unsigned c = mask.first(); c < max_cpus; c = mask.next(c + 1)) result.push_back(c);
    return result;
}

using Numbers = std::vector<unsigned>;

// Found by tests/fuzz/machine.cpp as well: all nodes of the list lie beyond those that we count.
TEST(Topology, HasNodeZeroWhereAllNumbersOfNodesAreTooLarge) {
    const auto machine = MadeUpMachine().nodes_file("online", "1024-1030").topology();
    EXPECT_EQ(machine->nodes(), 1u);
    EXPECT_EQ(machine->os_node(NodeId{0}), 0u);
}

// Found by tests/fuzz/machine.cpp: the list of nodes is read twice, and the kernel's number of the only node was 1024.
TEST(Topology, HasNodeZeroWhereTheListOfNodesIsGoneAtTheSecondLook) {
    int looks = 0;
    const os::SysReader reader{[](void* context, const char* path, char* buffer, Bytes) -> long {
                                   int& before = *static_cast<int*>(context);
                                   if (std::strcmp(path, "/sys/devices/system/node/online") != 0 || before++ > 0)
                                       return -ENOENT;
                                   std::strcpy(buffer, "0-1\n");
                                   return 4;
                               },
                               &looks};
    os::Topology machine;
    machine.read(reader, {[](void*, os::NodeMask&) { return os::TaskPolicy::none; }, nullptr});
    EXPECT_EQ(looks, 2);
    EXPECT_EQ(machine.nodes(), 1u);
    EXPECT_EQ(machine.os_node(NodeId{0}), 0u);
}

// The first look reads 511 characters, which may end in the middle of a range.
TEST(Topology, ALongListOfNodesIsNotOneNode) {
    for (const unsigned first : {0U, 1U, 2U}) {
        std::string list;
        for (unsigned n = first; n < 400; n += 2) list += std::to_string(n) + (n < 398 ? "," : "");
        auto machine = MadeUpMachine::regular(400, 1);
        EXPECT_GT(machine.nodes_file("online", list).topology()->nodes(), 100u) << list;
    }
}

TEST(Topology, ThePolicyIsAskedForOnlyWhereThereAreNodesToChooseFrom) {
    auto several = MadeUpMachine::regular(4, 2);
    EXPECT_EQ(several.topology()->nodes(), 4u);
    EXPECT_EQ(several.times_asked_for_policy(), 1u);
    auto confined = MadeUpMachine::regular(4, 2);
    confined.file("/proc/self/status", "Name:\tx\nMems_allowed_list:\t2\n");
    EXPECT_EQ(confined.topology()->nodes(), 1u);
    EXPECT_EQ(confined.times_asked_for_policy(), 0u);
}

TEST(Topology, OneNodeIsSeenFromOneFile) {
    auto machine = MadeUpMachine::regular(1, 4);
    const auto t = machine.topology();
    EXPECT_EQ(t->nodes(), 1u);
    EXPECT_EQ(t->node_of_cpu(3), NodeId{0});
    EXPECT_EQ(t->nearest(NodeId{0}, 0), NodeId{0});
    EXPECT_EQ(t->distance(NodeId{0}, NodeId{0}), 10u);
    EXPECT_EQ(machine.paths_read().size(), 1u);
    EXPECT_EQ(machine.times_asked_for_policy(), 0u);
}

TEST(Topology, NoSysAtAllIsOneNode) {
    MadeUpMachine machine;
    const auto t = machine.topology();
    EXPECT_EQ(t->nodes(), 1u);
    EXPECT_EQ(t->os_node(NodeId{0}), 0u);
    EXPECT_EQ(t->from_os_node(0), NodeId{0});
    EXPECT_EQ(t->from_os_node(1), no_node);
    EXPECT_FALSE(t->user_policy_rules());
}

TEST(Topology, EightNodes) {
    const auto t = MadeUpMachine::regular(8, 16).topology();
    ASSERT_EQ(t->nodes(), 8u);
    EXPECT_EQ(os_nodes(*t), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(t->node_of_cpu(0), NodeId{0});
    EXPECT_EQ(t->node_of_cpu(127), NodeId{7});
    EXPECT_EQ(t->node_of_cpu(128), no_node);
    EXPECT_EQ(t->distance(NodeId{3}, NodeId{4}), 20u);
    EXPECT_EQ(by_distance(*t, 3), (Numbers{3, 0, 1, 2, 4, 5, 6, 7}));
}

TEST(Topology, NearestFollowsTheDistances) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-3").nodes_file("has_memory", "0-3");
    machine.node(0, "0", "10 31 21 22")
        .node(1, "1", "31 10 22 21")
        .node(2, "2", "21 22 10 254")
        .node(3, "3", "12 12 12 10");
    const auto t = machine.topology();
    EXPECT_EQ(by_distance(*t, 0), (Numbers{0, 2, 3, 1}));
    EXPECT_EQ(by_distance(*t, 2), (Numbers{2, 0, 1, 3}));
    EXPECT_EQ(by_distance(*t, 3), (Numbers{3, 0, 1, 2}));
    EXPECT_EQ(t->distance(NodeId{2}, NodeId{3}), 254u);
}

TEST(Topology, GapsInTheNumbers) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0,4,252-253").nodes_file("has_memory", "0,4,252-253");
    machine.node(0, "0-1", "10 20 40 30")
        .node(4, "8-9", "20 10 30 40")
        .node(252, "2", "40 30 10 20")
        .node(253, "3", "30 40 20 10");
    const auto t = machine.topology();
    EXPECT_EQ(os_nodes(*t), (Numbers{0, 4, 252, 253}));
    EXPECT_EQ(t->from_os_node(252), NodeId{2});
    EXPECT_EQ(t->from_os_node(1), no_node);
    EXPECT_EQ(t->from_os_node(5000), no_node);
    EXPECT_EQ(t->node_of_cpu(9), NodeId{1});
    EXPECT_EQ(t->node_of_cpu(5), no_node);
    EXPECT_EQ(t->distance(NodeId{0}, NodeId{3}), 30u);
    EXPECT_EQ(by_distance(*t, 0), (Numbers{0, 1, 3, 2}));
}

TEST(Topology, CpusOfAMemorylessNodeLiveWithTheNearest) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-3").nodes_file("has_memory", "0,3");
    machine.node(0, "0", "10 20 30 40")
        .node(1, "1", "20 10 40 30")
        .node(2, "2", "40 30 10 20")
        .node(3, "3", "40 30 20 10");
    const auto t = machine.topology();
    EXPECT_EQ(os_nodes(*t), (Numbers{0, 3}));
    EXPECT_EQ(cpus(*t, 0), (Numbers{0, 1}));
    EXPECT_EQ(cpus(*t, 1), (Numbers{2, 3}));
    EXPECT_EQ(t->home_of_os_node(2), NodeId{1});
    EXPECT_EQ(t->from_os_node(2), no_node);
    EXPECT_EQ(t->distance(NodeId{0}, NodeId{1}), 40u);
}

TEST(Topology, ANodeWithoutCpusIsASpillOnly) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-2").nodes_file("has_memory", "0-2");
    machine.node(0, "0-3", "10 21 17").node(1, "4-7", "21 10 28").node(2, "", "17 28 10");
    const auto t = machine.topology();
    EXPECT_EQ(t->nodes(), 3u);
    EXPECT_TRUE(cpus(*t, 2).empty());
    EXPECT_EQ(by_distance(*t, 0), (Numbers{0, 2, 1}));
    EXPECT_EQ(by_distance(*t, 1), (Numbers{1, 0, 2}));
}

TEST(Topology, TheCpusetDecides) {
    auto machine = MadeUpMachine::regular(4, 2);
    machine.file("/proc/self/status", "Name:\tcat\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t1,3\n");
    const auto t = machine.topology();
    EXPECT_EQ(os_nodes(*t), (Numbers{1, 3}));
    // CPUs that the cpuset may still grant: their nearest of our nodes.
    EXPECT_EQ(t->node_of_cpu(0), NodeId{0});
    EXPECT_EQ(t->node_of_cpu(6), NodeId{1});
}

TEST(Topology, ACpusetOfOneNodeIsAMachineOfOneNode) {
    auto machine = MadeUpMachine::regular(4, 2);
    machine.file("/proc/self/status", "Mems_allowed_list:\t2\n");
    const auto t = machine.topology();
    EXPECT_EQ(os_nodes(*t), (Numbers{2}));
    EXPECT_EQ(t->from_os_node(2), NodeId{0});
    EXPECT_EQ(t->node_of_cpu(0), NodeId{0});
}

TEST(Topology, AnImpossibleCpusetIsNotBelieved) {
    auto machine = MadeUpMachine::regular(2, 2);
    machine.file("/proc/self/status", "Mems_allowed_list:\t9\n");
    EXPECT_EQ(machine.topology()->nodes(), 2u);
}

TEST(Topology, MembindLeavesItsNodesAndRules) {
    NodeMask two;
    two.add(0);
    two.add(3);
    const auto bound = MadeUpMachine::regular(4, 2).topology(TaskPolicy::membind, two);
    EXPECT_EQ(os_nodes(*bound), (Numbers{0, 3}));
    EXPECT_TRUE(bound->user_policy_rules());
    const auto interleaved = MadeUpMachine::regular(4, 2).topology(TaskPolicy::other, two);
    EXPECT_EQ(interleaved->nodes(), 4u);
    EXPECT_TRUE(interleaved->user_policy_rules());
}

TEST(Topology, OfflineCpusHaveNoHome) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-1").nodes_file("has_memory", "0-1");
    machine.node(0, "0,2-3", "10 20").node(1, "4,6", "20 10");
    const auto t = machine.topology();
    EXPECT_EQ(t->node_of_cpu(1), no_node);
    EXPECT_EQ(t->node_of_cpu(5), no_node);
    EXPECT_EQ(cpus(*t, 1), (Numbers{4, 6}));
}

TEST(Topology, AnOldKernelSaysMemoryInMeminfo) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-2");
    machine.node(0, "0", "10 20 20").node(1, "1", "20 10 20").node(2, "2", "20 20 10");
    machine.nodes_file("node0/meminfo", "Node 0 MemTotal:       32768 kB\nNode 0 MemFree: 1 kB");
    machine.nodes_file("node1/meminfo", "Node 1 MemTotal:       0 kB");
    machine.nodes_file("node2/meminfo", "Node 2 MemTotal:       16 kB");
    EXPECT_EQ(os_nodes(*machine.topology()), (Numbers{0, 2}));
}

TEST(Topology, UnreadableDistancesAreTenAndTwenty) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-1").nodes_file("has_memory", "0-1");
    machine.nodes_file("node0/cpulist", "0").nodes_file("node1/cpulist", "1");
    const auto t = machine.topology();
    EXPECT_EQ(t->distance(NodeId{0}, NodeId{0}), 10u);
    EXPECT_EQ(t->distance(NodeId{0}, NodeId{1}), 20u);
    EXPECT_EQ(by_distance(*t, 1), (Numbers{1, 0}));
}

TEST(Topology, ManyNodesAndThousandsOfCpus) {
    const auto t = MadeUpMachine::regular(128, 64).topology();
    ASSERT_EQ(t->nodes(), 128u);
    EXPECT_EQ(t->node_of_cpu(1023), NodeId{15});
    EXPECT_EQ(t->node_of_cpu(8191), NodeId{127});
    EXPECT_EQ(t->node_of_cpu(8192), no_node);
    EXPECT_EQ(cpus(*t, 127).size(), 64u);
    EXPECT_EQ(t->nearest(NodeId{100}, 127), NodeId{127});
    EXPECT_EQ(t->nearest(NodeId{100}, 1), NodeId{0});
}

TEST(Topology, TheMostNodesThereCanBe) {
    const auto t = MadeUpMachine::regular(1024, 8).topology();
    EXPECT_EQ(t->nodes(), 1024u);
    EXPECT_EQ(t->os_node(NodeId{1023}), 1023u);
    EXPECT_EQ(t->node_of_cpu(8191), NodeId{1023});
    EXPECT_EQ(t->nearest(NodeId{1023}, 1023), NodeId{1022});
}

TEST(Topology, ScatteredCpuNumbersFillALongList) {
    MadeUpMachine machine;
    machine.nodes_file("online", "0-1").nodes_file("has_memory", "0-1");
    std::string even, odd;
    for (unsigned c = 0; c < max_cpus; ++c) (c % 2 ? odd : even) += (c > 1 ? "," : "") + std::to_string(c);
    machine.node(0, even, "10 20").node(1, odd, "20 10");
    const auto t = machine.topology();
    EXPECT_EQ(t->node_of_cpu(8190), NodeId{0});
    EXPECT_EQ(t->node_of_cpu(8191), NodeId{1});
}

TEST(Topology, TheRealMachineHasAtLeastOneNode) {
    init_topology();
    EXPECT_GE(topology().nodes(), 1u);
    EXPECT_LT(current_node().value, topology().nodes());
}

}  // namespace
}  // namespace numalloc::os
