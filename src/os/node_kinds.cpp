#include "os/node_kinds.h"

#include <initializer_list>

#include "base/number_list.h"
#include "base/text.h"
#include "os/sysfs.h"

namespace numalloc::os {

namespace {

// Enough for the longest list: every other one of a thousand nodes.
constexpr Bytes text_bytes = 4096;
// The kernel has few tiers, but numbers them by abstract distance: DRAM is in tier 4, and memory of 2.5 times its
// latency and 1/10 of its bandwidth in tier 112.
constexpr unsigned most_tiers = 1024;

bool read_list(const SysReader& reader, const char* path, NodeMask& nodes) {
    char text[text_bytes];
    if (reader.read(reader.context, path, text, sizeof text) <= 0) return false;
    const char* p = text;
    return take_list(p, [&](unsigned first, unsigned last) {
        for (unsigned n = first; n <= last && n < max_os_nodes; ++n) nodes.add(n);
    });
}

// Read bandwidth in MB/s; 0 if unknown. access1 covers CPUs only; kernels before 5.19 have access0 alone.
long bandwidth_of(const SysReader& reader, unsigned os_node) {
    for (const char* access : {"access1", "access0"}) {
        Text<96> path;
        path << "/sys/devices/system/node/node" << os_node << '/' << access << "/initiators/read_bandwidth";
        char text[64];
        if (reader.read(reader.context, path.c_str(), text, sizeof text) <= 0) continue;
        const char* p = text;
        if (const long megabytes = take_number(p); megabytes > 0) return megabytes;
    }
    return 0;
}

void add_all(NodeMask& to, const NodeMask& from) {
    for (unsigned n = from.first(); n < max_os_nodes; n = from.next(n + 1)) to.add(n);
}

}  // namespace

bool nodes_with_cpus(const SysReader& reader, NodeMask& nodes) {
    return read_list(reader, "/sys/devices/system/node/has_cpu", nodes);
}

bool nodes_of_most_bandwidth(const SysReader& reader, const NodeMask& among, NodeMask& nodes) {
    long most = 0;
    NodeMask best;
    for (unsigned n = among.first(); n < max_os_nodes; n = among.next(n + 1)) {
        const long bandwidth = bandwidth_of(reader, n);
        if (bandwidth == 0 || bandwidth < most) continue;
        if (bandwidth > most) best.clear();
        most = bandwidth;
        best.add(n);
    }
    add_all(nodes, best);
    return most != 0;
}

bool nodes_of_slower_tiers(const SysReader& reader, NodeMask& nodes) {
    bool first_seen = false;
    for (unsigned tier = 0; tier < most_tiers; ++tier) {
        Text<96> path;
        path << "/sys/devices/virtual/memory_tiering/memory_tier" << tier << "/nodelist";
        NodeMask of_tier;
        if (!read_list(reader, path.c_str(), of_tier) || of_tier.empty()) continue;
        if (first_seen) add_all(nodes, of_tier);
        first_seen = true;
    }
    return first_seen;
}

}  // namespace numalloc::os
