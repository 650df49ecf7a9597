// Sets of nodes: in libnuma's syntax, and by the kind of node that the kernel reports.
#include "api/extension/node_sets.h"

#include "api/export.h"
#include "api/extension/error.h"
#include "api/extension/nodes.h"
#include "api/malloc/initialise.h"
#include "base/number_list.h"
#include "options/print.h"
#include "os/node_kinds.h"

namespace numalloc::api {

os::NodeMask usable_nodes() {
    wake();
    os::NodeMask all;
    for (unsigned i = 0; i < os::topology().nodes(); ++i) all.add(os::topology().os_node(NodeId{i}));
    return all;
}

bool ChosenNodes::choose(const numalloc_node_set& set) {
    of_kernel = mask_of(set);
    ours.clear();
    if (of_kernel.empty()) return fail(EINVAL), false;
    for (unsigned n = of_kernel.first(); n < os::max_os_nodes; n = of_kernel.next(n + 1)) {
        const NodeId node = named_node(static_cast<int>(n));
        if (node == no_node) return false;
        ours.add(node.value);
    }
    return true;
}

NodeId ChosenNodes::nearest() const {
    const os::Topology& topology = os::topology();
    const NodeId here = os::current_node();
    for (unsigned k = 0; k < topology.nodes(); ++k)
        if (const NodeId n = topology.nearest(here, k); ours.test(n.value)) return n;
    return here;
}

NodeId ChosenNodes::at(unsigned k) const {
    unsigned n = ours.first();
    while (k-- > 0) n = ours.next(n + 1);
    return NodeId{n};
}

namespace {

// The output of numalloc_node_set_print(): truncated to `bytes`; `length` is the full length.
struct Cut {
    char* text;
    size_t bytes;
    size_t length = 0;

    Cut& operator<<(const char* s) {
        for (; *s != '\0'; ++s, ++length)
            if (length + 1 < bytes) text[length] = *s;
        return *this;
    }
    Cut& operator<<(char c) {
        const char one[] = {c, '\0'};
        return *this << one;
    }
    Cut& operator<<(unsigned number) {
        Text<16> digits;
        digits << number;
        return *this << digits.c_str();
    }
};

bool same_text(const char* a, const char* b) { return strcmp(a, b) == 0; }

// Parses all of `text` as a list. `relative`: its numbers count the nodes of `usable`.
bool take_all(const char* text, bool relative, const os::NodeMask& usable, os::NodeMask& nodes) {
    bool in_range = true;
    const unsigned count = usable.count();
    const bool list = take_list(text, [&](unsigned first, unsigned last) {
        if (last >= (relative ? count : os::max_os_nodes)) in_range = false;
        for (unsigned n = first; in_range && n <= last; ++n) {
            unsigned node = n;
            if (relative) {
                node = usable.first();
                for (unsigned i = 0; i < n; ++i) node = usable.next(node + 1);
            }
            nodes.add(node);
        }
    });
    return list && in_range && *text == '\0';
}

}  // namespace

}  // namespace numalloc::api

using namespace numalloc;
using namespace numalloc::api;

extern "C" {

NUMALLOC_EXPORT int numalloc_node_set_parse(const char* text, numalloc_node_set* set) noexcept {
    const os::NodeMask usable = usable_nodes();
    const bool others = *text == '!';
    if (others) ++text;
    const bool relative = *text == '+';
    if (relative) ++text;
    os::NodeMask nodes;
    if (same_text(text, "all")) nodes = usable;
    else if (*text == '\0' ? others || relative : !take_all(text, relative, usable, nodes)) return fail(EINVAL);
    for (unsigned n = nodes.first(); n < os::max_os_nodes; n = nodes.next(n + 1))
        if (usable_node(static_cast<int>(n)) == no_node) return -1;
    if (others) {
        os::NodeMask rest = usable;
        for (unsigned n = nodes.first(); n < os::max_os_nodes; n = nodes.next(n + 1)) rest.remove(n);
        nodes = rest;
    }
    *set = set_of(nodes);
    return 0;
}

NUMALLOC_EXPORT int numalloc_node_set_print(const numalloc_node_set* set, char* text, size_t bytes) noexcept {
    Cut out{text, bytes};
    print_nodes(out, mask_of(*set));
    if (bytes > 0) text[min_of(out.length, bytes - 1)] = '\0';
    return static_cast<int>(out.length);
}

NUMALLOC_EXPORT int numalloc_node_set_of_kind(enum numalloc_node_kind kind, numalloc_node_set* set) noexcept {
    const os::NodeMask usable = usable_nodes();
    const os::SysReader reader = os::real_reader();
    os::NodeMask nodes;
    bool known = true;
    switch (kind) {
        case NUMALLOC_NODES_USABLE: nodes = usable; break;
        case NUMALLOC_NODES_WITH_CPUS: known = os::nodes_with_cpus(reader, nodes); break;
        case NUMALLOC_NODES_MEMORY_ONLY: {
            os::NodeMask with_cpus;
            known = os::nodes_with_cpus(reader, with_cpus);
            for (unsigned n = usable.first(); n < os::max_os_nodes; n = usable.next(n + 1))
                if (!with_cpus.test(n)) nodes.add(n);
            break;
        }
        case NUMALLOC_NODES_MOST_BANDWIDTH: known = os::nodes_of_most_bandwidth(reader, usable, nodes); break;
        case NUMALLOC_NODES_SLOWER_TIERS: known = os::nodes_of_slower_tiers(reader, nodes); break;
        default: return fail(EINVAL);
    }
    if (!known) return fail(ENODATA);
    nodes = nodes & usable;
    *set = set_of(nodes);
    return static_cast<int>(nodes.count());
}

}  // extern "C"
