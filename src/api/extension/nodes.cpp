// Questions about the machine: nodes, distances, CPUs, free memory, and the node of a pointer. All functions are
// thread-safe; numalloc.h has the contract of each.
#include "api/extension/nodes.h"

#include <climits>
#include <cstring>

#include "api/export.h"
#include "api/extension/error.h"
#include "api/malloc/initialise.h"
#include "heap/node/locate.h"
#include "heap/program_heaps/bound_heap.h"
#include "numalloc/numalloc.h"
#include "os/topology.h"

namespace numalloc::api {

NodeId usable_node(int os_node) {
    wake();
    const os::Topology& topology = os::topology();
    if (os_node < 0 || !topology.exists(static_cast<unsigned>(os_node))) {
        errno = EINVAL;
        return no_node;
    }
    const NodeId node = topology.from_os_node(static_cast<unsigned>(os_node));
    if (node == no_node) errno = ENXIO;
    return node;
}

NodeId named_node(int os_node) {
    const NodeId node = usable_node(os_node);
    if (node != no_node) process_heap.name_nodes();
    return node;
}

namespace {

int os_number(NodeId n) { return static_cast<int>(os::topology().os_node(n)); }

// The kernel's number of the node of p's page; -1 with errno if there is none.
int ask_kernel(const void* p) {
    wake();
    if (!os::topology().machine_has_one_node()) {
        const int node = os::node_of_page(p);
        return node >= 0 ? node : fail(-node);
    }
    // The machine has one node; a page that was never written is on none.
    const int error = os::ask_for_page(p);
    return error == -ENOENT || error == -EFAULT ? fail(-error) : os_number(NodeId{0});
}

}  // namespace

}  // namespace numalloc::api

using namespace numalloc;
using namespace numalloc::api;

extern "C" {

NUMALLOC_EXPORT int numalloc_node_count(void) noexcept {
    wake();
    return static_cast<int>(os::topology().nodes());
}

NUMALLOC_EXPORT int numalloc_nodes(int* nodes, int capacity) noexcept {
    const int count = numalloc_node_count();
    for (int i = 0; i < count && i < capacity; ++i) nodes[i] = os_number(NodeId{static_cast<unsigned>(i)});
    return count;
}

NUMALLOC_EXPORT int numalloc_distance(int from, int to) noexcept {
    const NodeId a = usable_node(from);
    if (a == no_node) return -1;
    const NodeId b = usable_node(to);
    return b == no_node ? -1 : static_cast<int>(os::topology().distance(a, b));
}

NUMALLOC_EXPORT int numalloc_node_cpus(int node, size_t bytes, void* cpu_set) noexcept {
    wake();
    if (node < 0 || !os::topology().exists(static_cast<unsigned>(node))) return fail(EINVAL);
    os::CpuMask mask;
    if (!os::cpus_of_os_node(static_cast<unsigned>(node), mask.data(), os::CpuMask::words)) {
        // Without /sys there is one node, with the CPUs that the process may use. A machine of several was known at the
        // start, by files that cannot be read any more.
        if (!os::topology().machine_has_one_node()) return fail(EIO);
        if (os::get_affinity(0, mask) <= 0) return fail(EINVAL);
    }
    for (unsigned cpu = mask.first(); cpu < os::max_cpus; cpu = mask.next(cpu + 1))
        if (cpu / CHAR_BIT >= bytes) return fail(EINVAL);
    memset(cpu_set, 0, bytes);
    memcpy(cpu_set, mask.data(), min_of<Bytes>(bytes, sizeof mask));
    return static_cast<int>(mask.count());
}

NUMALLOC_EXPORT long long numalloc_node_free_memory(int node) noexcept {
    if (usable_node(node) == no_node) return -1;
    const Bytes bytes = os::recent_free_bytes_of_node(static_cast<unsigned>(node));
    return bytes == ~Bytes{0} ? fail(EIO) : static_cast<long long>(bytes);
}

NUMALLOC_EXPORT int numalloc_node_of(const void* p) noexcept {
    const Location at = locate(p);
    if (NUMALLOC_UNLIKELY(at.owner == nullptr || at.found == Found::unused || at.found == Found::guarded))
        return ask_kernel(p);
    if (NUMALLOC_UNLIKELY(at.owner->pages.foreign().has(at.owner->pages.region().bag_of(p)))) return ask_kernel(p);
    const bool in_turn = at.owner->node.value >= process_heap.nodes();
    if (process_heap.may_stray(at) || ProcessHeap::is_inherited(at)) {
        const int node = os::node_of_page(p);
        return node >= 0 ? node : os_number(at.owner->node);
    }
    const bool may_have_moved = at.found != Found::small && process_heap.any_moved();
    const bool is_spread = at.found == Found::bound && BoundHeap::lies_spread(at);
    return NUMALLOC_UNLIKELY(in_turn || may_have_moved || is_spread) ? ask_kernel(p) : os_number(at.owner->node);
}

NUMALLOC_EXPORT int numalloc_current_node(void) noexcept {
    wake();
    const os::Topology& topology = os::topology();
    if (topology.machine_has_one_node()) return os_number(NodeId{0});
    // With one usable node, the table of CPUs does not tell the other nodes apart.
    const int node = topology.nodes() > 1 ? os::current_os_node() : os::ask_os_node();
    return node >= 0 ? node : os_number(NodeId{0});
}

}  // extern "C"
