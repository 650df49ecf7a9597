// Nodes by the kernel's attributes, on made-up machines with HBM and CXL.
#include "os/node_kinds.h"

#include <gtest/gtest.h>

#include "support/made_up_machine.h"

namespace numalloc::os {
namespace {

using numalloc::testing::MadeUpMachine;

NodeMask mask(std::initializer_list<unsigned> nodes) {
    NodeMask result;
    for (const unsigned n : nodes) result.add(n);
    return result;
}

TEST(NodeKinds, MostBandwidthIsByThePathOfCpusFirst) {
    MadeUpMachine machine;
    for (const unsigned n : {0u, 1u, 2u, 3u, 5u}) {
        const std::string folder = "/sys/devices/system/node/node" + std::to_string(n);
        machine.file(folder + "/access1/initiators/read_bandwidth", n == 2 || n == 3 ? "800000" : "200000");
        machine.file(folder + "/access0/initiators/read_bandwidth", n == 5 ? "9000000" : "1");
    }
    NodeMask nodes;
    EXPECT_TRUE(nodes_of_most_bandwidth(machine.reader(), mask({0, 1, 2, 3, 4, 5}), nodes));
    EXPECT_EQ(nodes, mask({2, 3}));
    nodes.clear();
    EXPECT_TRUE(nodes_of_most_bandwidth(machine.reader(), mask({0, 1, 2}), nodes));
    EXPECT_EQ(nodes, mask({2})) << "of those that may be used";
}

TEST(NodeKinds, OlderKernelsHaveOnePathAlone) {
    MadeUpMachine machine;
    machine.file("/sys/devices/system/node/node4/access0/initiators/read_bandwidth", "77");
    NodeMask nodes;
    EXPECT_TRUE(nodes_of_most_bandwidth(machine.reader(), mask({0, 4}), nodes));
    EXPECT_EQ(nodes, mask({4}));
}

TEST(NodeKinds, SlowerTiersAreAllBehindTheFirstThatHasNodes) {
    MadeUpMachine machine;
    const std::string folder = "/sys/devices/virtual/memory_tiering/memory_tier";
    machine.file(folder + "2/nodelist", "")
        .file(folder + "4/nodelist", "0-3")
        .file(folder + "22/nodelist", "5,7")
        .file(folder + "30/nodelist", "9");
    NodeMask nodes;
    EXPECT_TRUE(nodes_of_slower_tiers(machine.reader(), nodes));
    EXPECT_EQ(nodes, mask({5, 7, 9}));
}

TEST(NodeKinds, SayNothingWhereTheKernelDoes) {
    MadeUpMachine machine;
    NodeMask nodes;
    EXPECT_FALSE(nodes_of_most_bandwidth(machine.reader(), mask({0, 1}), nodes));
    EXPECT_FALSE(nodes_of_slower_tiers(machine.reader(), nodes));
    EXPECT_FALSE(nodes_with_cpus(machine.reader(), nodes));
    EXPECT_TRUE(nodes.empty());
    machine.nodes_file("has_cpu", "0-1,8");
    EXPECT_TRUE(nodes_with_cpus(machine.reader(), nodes));
    EXPECT_EQ(nodes, mask({0, 1, 8}));
}

}  // namespace
}  // namespace numalloc::os
