#include "os/topology.h"

#include <cstring>

#include "base/number_list.h"
#include "base/text.h"
#include "os/memory.h"
#include "os/sysfs.h"

namespace numalloc::os {

namespace {

constexpr const char* node_directory = "/sys/devices/system/node/";
constexpr unsigned local_distance = 10;
constexpr unsigned remote_distance = 20;
// The longest file: the CPU list of a node with every other one of 8192 CPUs.
constexpr Bytes text_bytes = 64 * KiB;

using Path = Text<96>;

bool take_nodes(const char* text, NodeMask& nodes) {
    return take_list(text, [&](unsigned first, unsigned last) {
        for (unsigned n = first; n <= last && n < max_os_nodes; ++n) nodes.add(n);
    });
}

bool read_nodes(const SysReader& reader, const char* name, char* text, Bytes capacity, NodeMask& nodes) {
    Path path;
    path << node_directory << name;
    return reader.read(reader.context, path.c_str(), text, capacity) > 0 && take_nodes(text, nodes);
}

long read_of_node(const SysReader& reader, unsigned n, const char* name, char* text) {
    Path path;
    path << node_directory << "node" << n << '/' << name;
    return reader.read(reader.context, path.c_str(), text, text_bytes);
}

// Reads meminfo instead of has_memory, which kernels before 2.6.24 and some containers do not have.
bool has_memory(const SysReader& reader, unsigned n, char* text) {
    if (read_of_node(reader, n, "meminfo", text) <= 0) return false;
    const char* p = std::strstr(text, "MemTotal:");
    if (p == nullptr) return false;
    p += std::strlen("MemTotal:");
    while (*p == ' ') ++p;
    return take_number(p) > 0;
}

// Leaves `nodes` unchanged if no node would remain: a wrong placement is better than none.
void restrict_to(NodeMask& nodes, const NodeMask& allowed) {
    const NodeMask both = nodes & allowed;
    if (!both.empty()) nodes = both;
}

void restrict_to_cpuset(const SysReader& reader, NodeMask& nodes, char* text) {
    if (reader.read(reader.context, "/proc/self/status", text, text_bytes) <= 0) return;
    const char* p = std::strstr(text, "Mems_allowed_list:");
    if (p == nullptr) return;
    p += std::strlen("Mems_allowed_list:");
    while (*p == ' ' || *p == '\t') ++p;
    NodeMask allowed;
    if (take_nodes(p, allowed)) restrict_to(nodes, allowed);
}

}  // namespace

void Topology::read(const SysReader& reader, const TaskReader& task) {
    // On most machines this one file shows that there is a single node. A short buffer is enough to see whether there
    // are more, also if it cuts a long list off.
    char few[512];
    NodeMask online;
    if (!read_nodes(reader, "online", few, sizeof few, online) && online.count() < 2) return;
    if (online.empty()) return;
    only_os_node_ = online.first();
    online_ = online;
    if (online.count() == 1) return;
    auto* text = static_cast<char*>(map(text_bytes));
    if (text == nullptr) return;
    read_several(reader, task, text);
    unmap_unused(address_of(text), text_bytes);
}

void Topology::read_several(const SysReader& reader, const TaskReader& task, char* text) {
    NodeMask online;
    NodeMask memory;
    read_nodes(reader, "online", text, text_bytes, online);
    if (online.empty()) return;  // the file could be read a moment ago
    online_ = online;
    if (!read_nodes(reader, "has_memory", text, text_bytes, memory))
        for (unsigned n = online.first(); n < max_os_nodes; n = online.next(n + 1))
            if (has_memory(reader, n, text)) memory.add(n);
    mine_ = online;
    restrict_to(mine_, memory);
    restrict_to_cpuset(reader, mine_, text);
    if (mine_.count() > 1) {
        NodeMask task_nodes;
        const TaskPolicy policy = task.read(task.context, task_nodes);
        user_policy_rules_ = policy == TaskPolicy::membind || policy == TaskPolicy::other;
        user_policy_is_local_ = policy == TaskPolicy::local;
        if (policy == TaskPolicy::membind) restrict_to(mine_, task_nodes);
    }

    only_os_node_ = mine_.first();
    if (mine_.count() == 1) return;
    nodes_ = mine_.count();
    if (!make_tables()) {
        nodes_ = 1;
        return;
    }
    read_distances(reader, online, text);
    rank_by_distance();
    read_cpus(reader, online, text);
}

bool Topology::make_tables() {
    const Bytes pairs = Bytes{nodes_} * nodes_;
    const Bytes smalls = nodes_ + max_os_nodes + max_cpus + pairs;
    auto* memory = static_cast<Small*>(map(align_up(smalls * sizeof(Small) + pairs, page_size())));
    if (memory == nullptr) return false;
    os_node_ = memory;
    home_of_os_node_ = os_node_ + nodes_;
    os_node_of_cpu_ = home_of_os_node_ + max_os_nodes;
    order_ = os_node_of_cpu_ + max_cpus;
    distance_ = reinterpret_cast<std::uint8_t*>(order_ + pairs);

    Small dense = 0;
    for (unsigned n = mine_.first(); n < max_os_nodes; n = mine_.next(n + 1)) {
        os_node_[dense] = static_cast<Small>(n);
        home_of_os_node_[n] = ++dense;
    }
    return true;
}

// A node's distance file lists its distance to each online node in order of number. The home of a node that is not ours
// is the nearest of ours.
void Topology::read_distances(const SysReader& reader, const NodeMask& online, char* text) {
    for (unsigned from = online.first(); from < max_os_nodes; from = online.next(from + 1)) {
        const NodeId mine = from_os_node(from);
        const bool readable = read_of_node(reader, from, "distance", text) > 0;
        const char* p = readable ? text : "";
        unsigned nearest_distance = ~0U;
        for (unsigned to = online.first(); to < max_os_nodes; to = online.next(to + 1)) {
            while (*p == ' ') ++p;
            const long said = take_number(p);
            unsigned d = from == to ? local_distance : remote_distance;
            if (said > 0 && said < 256) d = static_cast<unsigned>(said);
            if (!mine_.test(to)) continue;
            if (mine != no_node) {
                distance_[mine.value * nodes_ + from_os_node(to).value] = static_cast<std::uint8_t>(d);
            } else if (d < nearest_distance) {
                nearest_distance = d;
                home_of_os_node_[from] = static_cast<Small>(from_os_node(to).value + 1);
            }
        }
    }
}

void Topology::read_cpus(const SysReader& reader, const NodeMask& online, char* text) {
    for (unsigned n = online.first(); n < max_os_nodes; n = online.next(n + 1)) {
        if (read_of_node(reader, n, "cpulist", text) <= 0) continue;
        const char* p = text;
        take_list(p, [&](unsigned first, unsigned last) {
            for (unsigned cpu = first; cpu <= last && cpu < max_cpus; ++cpu)
                os_node_of_cpu_[cpu] = static_cast<Small>(n + 1);
        });
    }
}

// A counting sort of each row: distances are bytes, and a thousand nodes have a million pairs.
void Topology::rank_by_distance() {
    for (unsigned from = 0; from < nodes_; ++from) {
        const std::uint8_t* row = distance_ + Bytes{from} * nodes_;
        Small* order = order_ + Bytes{from} * nodes_;
        Small start[257] = {};
        for (unsigned to = 0; to < nodes_; ++to)
            if (to != from) ++start[row[to] + 1];
        start[0] = 1;
        for (unsigned d = 0; d < 256; ++d) start[d + 1] = static_cast<Small>(start[d + 1] + start[d]);
        order[0] = static_cast<Small>(from);
        for (unsigned to = 0; to < nodes_; ++to)
            if (to != from) order[start[row[to]]++] = static_cast<Small>(to);
    }
}

NodeId Topology::from_os_node(unsigned os_node) const {
    if (nodes_ == 1) return os_node == only_os_node_ ? NodeId{0} : no_node;
    return mine_.test(os_node) ? minus_one(home_of_os_node_[os_node]) : no_node;
}

void Topology::cpus_of(NodeId n, CpuMask& mask) const {
    mask.clear();
    for (unsigned cpu = 0; cpu < max_cpus; ++cpu)
        if (node_of_cpu(cpu) == n) mask.add(cpu);
}

bool cpus_of_os_node(unsigned os_node, std::uint64_t* mask, unsigned words) {
    for (unsigned w = 0; w < words; ++w) mask[w] = 0;
    auto* text = static_cast<char*>(map(text_bytes));
    if (text == nullptr) return false;
    const bool readable = read_of_node(real_reader(), os_node, "cpulist", text) > 0;
    const char* p = text;
    if (readable)
        take_list(p, [&](unsigned first, unsigned last) {
            for (unsigned cpu = first; cpu <= last && cpu < words * 64; ++cpu)
                mask[cpu / 64] |= std::uint64_t{1} << (cpu % 64);
        });
    unmap_unused(address_of(text), text_bytes);
    return readable;
}

namespace {

constinit Topology machine;

}  // namespace

const Topology& topology() { return machine; }

void init_topology() {
    machine.read(real_reader(), {[](void*, NodeMask& nodes) { return task_policy(nodes); }, nullptr});
}

void init_topology(const SysReader& reader, const TaskReader& task) { machine.read(reader, task); }

int current_os_node() {
    const int cpu = current_cpu();
    const int os_node = cpu < 0 ? -1 : machine.os_node_of_cpu(static_cast<unsigned>(cpu));
    // A CPU that is not in the table came online after it was read.
    return os_node >= 0 ? os_node : ask_os_node();
}

NodeId current_node() {
    if (machine.nodes() == 1) return NodeId{0};
    const int os_node = current_os_node();
    const NodeId node = os_node < 0 ? no_node : machine.home_of_os_node(static_cast<unsigned>(os_node));
    return node == no_node ? NodeId{0} : node;
}

}  // namespace numalloc::os
