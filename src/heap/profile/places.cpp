#include "heap/profile/places.h"

#include "heap/node/locate.h"
#include "os/topology.h"

namespace numalloc::profile {

namespace {

constexpr unsigned most_pages = 16;

// The node that the heap meant the pages for. It knows none for interleaved memory.
OsNode meant_for(const void* p) {
    const Location at = locate(p);
    if (at.owner == nullptr || at.owner->node.value >= process_heap.nodes()) return unknown_node;
    return static_cast<OsNode>(os::topology().os_node(process_heap.node_of(at)));
}

}  // namespace

OsNode pages_of(const Block& block) {
    if (os::topology().nodes() == 1) return static_cast<OsNode>(os::topology().os_node(NodeId{0}));
    const Bytes page_size = os::page_size();
    const Address first = align_down(address_of(block.address), page_size);
    const Bytes pages =
        (align_up(address_of(block.address) + max_of<Bytes>(block.size, 1), page_size) - first) / page_size;
    const unsigned asked = static_cast<unsigned>(min_of<Bytes>(pages, most_pages));
    const void* page[most_pages];
    int node[most_pages];
    for (unsigned i = 0; i < asked; ++i) page[i] = reinterpret_cast<const void*>(first + i * pages / asked * page_size);
    if (!os::nodes_of_pages(page, node, asked)) return meant_for(block.address);
    unsigned most = 0;
    int best = unknown_node;
    for (unsigned i = 0; i < asked; ++i) {
        if (node[i] < 0) continue;
        unsigned same = 0;
        for (unsigned k = i; k < asked; ++k) same += node[k] == node[i] ? 1U : 0U;
        if (same > most) {
            most = same;
            best = node[i];
        }
    }
    return static_cast<OsNode>(best);
}

}  // namespace numalloc::profile
