// The machine as this process may use it: nodes with memory, the distances between them, and
// the home of each CPU. Read once; afterwards constant, so that every question is thread-safe
// and none makes a system call.
//
// A NodeId is a node that has memory we may use; the kernel's numbers ("os node") cover those
// with CPUs only as well. CPUs of a node without memory have their home on the nearest node that
// has some; a node without CPUs (CXL, say) serves as a spill and never gets threads.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "os/affinity.h"
#include "os/numa_policy.h"

namespace numalloc::os {

// Whoever reads /sys and /proc for us: read_file, or a made-up tree in the tests.
struct SysReader {
    long (*read)(void* context, const char* path, char* buffer, Bytes capacity);
    void* context;
};

// Whoever says what memory policy the process began with (numactl). A seccomp filter may kill for the question: it is
// asked only where several nodes are there to choose from.
struct TaskReader {
    TaskPolicy (*read)(void* context, NodeMask& nodes);
    void* context;
};

class Topology {
public:
    // Reads the machine. Without /sys, and where memory for the tables is refused, it has one node. Called once.
    void read(const SysReader& reader, const TaskReader& task);

    unsigned nodes() const { return nodes_; }
    unsigned os_node(NodeId n) const { return nodes_ == 1 ? only_os_node_ : os_node_[n.value]; }
    // Stands for memory that lies on all nodes in turn: a number behind the nodes', the only node's
    // where there is one.
    NodeId interleaved() const { return NodeId{nodes_ > 1 ? nodes_ : 0}; }
    // The node with this kernel number; no_node when it is none of ours.
    NodeId from_os_node(unsigned os_node) const;
    // Nodes of the machine, whether the process may use them or not.
    bool exists(unsigned os_node) const { return online_.test(os_node) || os_node == only_os_node_; }
    bool machine_has_one_node() const { return online_.count() <= 1; }

    // Whose memory is nearest to the CPU; no_node for CPUs that were offline or beyond max_cpus.
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
    // The same for a node of the kernel's, with or without memory; no_node for unknown ones.
    NodeId home_of_os_node(unsigned os_node) const {
        if (nodes_ == 1) return NodeId{0};
        return os_node < max_os_nodes ? minus_one(home_of_os_node_[os_node]) : no_node;
    }
    // All CPUs whose home is `n`. On a machine of one node, every CPU there can be.
    void cpus_of(NodeId n, CpuMask& mask) const;

    // As the firmware says, 10 for a node itself; 20 where nothing is said.
    unsigned distance(NodeId from, NodeId to) const {
        return nodes_ == 1 ? 10U : distance_[from.value * nodes_ + to.value];
    }
    // The k-th nearest node: k = 0 is `from`; equal distances in order of number. k < nodes().
    NodeId nearest(NodeId from, unsigned k) const {
        return nodes_ == 1 ? from : NodeId{order_[from.value * nodes_ + k]};
    }

    // The user has set a memory policy (numactl --interleave, --membind, --preferred): ours
    // must not override it, so memory is left unbound.
    bool user_policy_rules() const { return user_policy_rules_; }

private:
    using Small = std::uint16_t;
    static constexpr NodeId minus_one(Small stored) { return stored == 0 ? no_node : NodeId{stored - 1U}; }

    bool make_tables();
    void read_distances(const SysReader& reader, const NodeMask& online, char* text);
    void read_cpus(const SysReader& reader, const NodeMask& online, char* text);
    void rank_by_distance();

    unsigned nodes_ = 1;
    unsigned only_os_node_ = 0;
    bool user_policy_rules_ = false;
    NodeMask online_;  // kernel numbers of all nodes

    // One mapping, made only for several nodes. "+ 1": zero means unknown.
    NodeMask mine_;                     // kernel numbers of our nodes
    Small* os_node_ = nullptr;          // [nodes]
    Small* home_of_os_node_ = nullptr;  // [max_os_nodes] + 1
    Small* os_node_of_cpu_ = nullptr;   // [max_cpus] + 1
    Small* order_ = nullptr;            // [nodes][nodes]
    std::uint8_t* distance_ = nullptr;  // [nodes][nodes]
};

// The machine we run on. Valid, with one node, before init_topology() too.
const Topology& topology();
void init_topology();
// For tests: the process then believes in the reader's machine.
void init_topology(const SysReader& reader, const TaskReader& task);

// The CPUs of one of the kernel's nodes as /sys lists them now. false where it does not.
bool cpus_of_os_node(unsigned os_node, CpuMask& mask);

// The node of the caller's CPU: the kernel's number, or -1 where nobody tells; and the node
// whose memory is nearest, then 0. No system call on the usual path.
int current_os_node();
NodeId current_node();

}  // namespace numalloc::os
