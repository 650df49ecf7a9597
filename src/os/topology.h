// The machine as this process may use it: the nodes with memory, the distances between them, and the home of each CPU.
// Read once and constant afterwards, so that every query is thread-safe and makes no system call.
//
// A NodeId is a node with memory that we may use; the kernel's numbers ("os node") also cover nodes with CPUs only.
// CPUs of a node without memory have their home on the nearest node with memory. A node without CPUs (CXL, for example)
// serves as a spill target and never gets threads.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "os/affinity.h"
#include "os/numa_policy.h"
#include "os/sysfs.h"

namespace numalloc::os {

// Reads the memory policy that the process began with (numactl). Called only if there are several nodes to choose from,
// because a seccomp filter may kill the process for the system call.
struct TaskReader {
    TaskPolicy (*read)(void* context, NodeMask& nodes);
    void* context;
};

class Topology {
public:
    // Reads the machine. Called once. If /sys or memory for the tables is missing, the machine has one node.
    void read(const SysReader& reader, const TaskReader& task);

    unsigned nodes() const { return nodes_; }
    unsigned os_node(NodeId n) const { return nodes_ == 1 ? only_os_node_ : os_node_[n.value]; }
    // The kernel's numbers of all our nodes; empty with one node.
    const NodeMask& os_nodes() const { return mine_; }
    // The NodeId of interleaved memory: the one after the last node's; with one node, that node's.
    NodeId interleaved() const { return NodeId{nodes_ > 1 ? nodes_ : 0}; }
    // The node with this kernel number; no_node if it is not one of ours.
    NodeId from_os_node(unsigned os_node) const;
    // Nodes of the machine, whether or not the process may use them.
    bool exists(unsigned os_node) const { return online_.test(os_node) || os_node == only_os_node_; }
    bool machine_has_one_node() const { return online_.count() <= 1; }

    // The node whose memory is nearest to the CPU; no_node for CPUs that were offline, or beyond max_cpus.
    NodeId node_of_cpu(unsigned cpu) const {
        if (nodes_ == 1) return NodeId{0};
        const int os_node = os_node_of_cpu(cpu);
        return os_node < 0 ? no_node : home_of_os_node(static_cast<unsigned>(os_node));
    }
    // The kernel's number of the node that has the CPU, or -1.
    int os_node_of_cpu(unsigned cpu) const {
        if (nodes_ == 1) return static_cast<int>(only_os_node_);
        return cpu < max_cpus ? int{os_node_of_cpu_[cpu]} - 1 : -1;
    }
    // The home of one of the kernel's nodes, with or without memory; no_node for unknown ones.
    NodeId home_of_os_node(unsigned os_node) const {
        if (nodes_ == 1) return NodeId{0};
        return os_node < max_os_nodes ? minus_one(home_of_os_node_[os_node]) : no_node;
    }
    // All CPUs whose home is `n`. On a machine of one node, all CPUs below max_cpus.
    void cpus_of(NodeId n, CpuMask& mask) const;

    // The firmware's distance: 10 from a node to itself; 20 if the firmware does not say.
    unsigned distance(NodeId from, NodeId to) const {
        return nodes_ == 1 ? 10U : distance_[from.value * nodes_ + to.value];
    }
    // The k-th nearest node, k < nodes(): k = 0 is `from`; equal distances in order of number.
    NodeId nearest(NodeId from, unsigned k) const {
        return nodes_ == 1 ? from : NodeId{order_[from.value * nodes_ + k]};
    }

    // The user has set a memory policy (numactl --interleave, --membind, --preferred). Ours must not override it, so
    // memory is left unbound.
    bool user_policy_rules() const { return user_policy_rules_; }
    // The user has set the policy `local`, which also keeps the kernel from moving pages (numalloc run --autonuma off).
    bool user_policy_is_local() const { return user_policy_is_local_; }

private:
    using Small = std::uint16_t;
    static constexpr NodeId minus_one(Small stored) { return stored == 0 ? no_node : NodeId{stored - 1U}; }

    // Of a machine with several nodes. `text`: room for one file.
    void read_several(const SysReader& reader, const TaskReader& task, char* text);
    bool make_tables();
    void read_distances(const SysReader& reader, const NodeMask& online, char* text);
    void read_cpus(const SysReader& reader, const NodeMask& online, char* text);
    void rank_by_distance();

    unsigned nodes_ = 1;
    unsigned only_os_node_ = 0;
    bool user_policy_rules_ = false;
    bool user_policy_is_local_ = false;
    NodeMask online_;  // kernel numbers of all nodes

    // The tables are one mapping, made only for several nodes. "+ 1": the number plus one; zero means unknown.
    NodeMask mine_;                     // kernel numbers of our nodes
    Small* os_node_ = nullptr;          // [nodes]
    Small* home_of_os_node_ = nullptr;  // [max_os_nodes] + 1
    Small* os_node_of_cpu_ = nullptr;   // [max_cpus] + 1
    Small* order_ = nullptr;            // [nodes][nodes]
    std::uint8_t* distance_ = nullptr;  // [nodes][nodes]
};

// The machine that this process runs on. Before init_topology() it has one node.
const Topology& topology();
void init_topology();
// For tests: reads the machine from `reader` and `task` instead.
void init_topology(const SysReader& reader, const TaskReader& task);

// The CPUs of one of the kernel's nodes as /sys lists them now. false if the list cannot be read.
bool cpus_of_os_node(unsigned os_node, std::uint64_t* mask, unsigned words);

// The node of the caller's CPU: the kernel's number (-1 if unknown), and the node whose memory is nearest (0 if
// unknown). No system call on the usual path.
int current_os_node();
NodeId current_node();

}  // namespace numalloc::os
