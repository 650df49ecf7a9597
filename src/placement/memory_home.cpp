#include "placement/memory_home.h"

#include <atomic>
#include <cerrno>
#include <new>

#include "options/options.h"
#include "os/memory.h"
#include "os/messages.h"
#include "placement/internal.h"

// glibc 2.32 and later: whether the process has one thread.
extern "C" {
extern char __libc_single_threaded __attribute__((weak));
}

namespace numalloc::placement {

namespace {

using Kind = MemoryPlacement::Kind;

// A placement whose nodes exist and may be used.
struct Resolved {
    MemoryPlacement said;  // with the kernel's numbers
    os::NodeMask nodes;    // the same nodes with our numbers
    Resolved* next = nullptr;
};

constinit Resolved of_process;
NUMALLOC_THREAD_LOCAL const Resolved* of_thread = nullptr;

// The placements that threads have set, each different one once. Never freed, so that threads' pointers stay valid. A
// fork may meet any step of a change here: a placement is listed when it is complete.
constinit std::atomic<Resolved*> known{nullptr};                   // written under the lock
Resolved* next_fresh NUMALLOC_GUARDED_BY(process.lock) = nullptr;  // in a page of its own kind, or at its end

// Returns 0, or the error of the first node that cannot be used.
int resolve(const MemoryPlacement& said, os::NodeMask& nodes) {
    const os::Topology& topology = os::topology();
    nodes.clear();
    for (unsigned n = said.nodes.first(); n < os::max_os_nodes; n = said.nodes.next(n + 1)) {
        if (!topology.exists(n)) return EINVAL;
        const NodeId node = topology.from_os_node(n);
        if (node == no_node) return ENXIO;
        nodes.add(node.value);
    }
    return 0;
}

Resolved* fresh() NUMALLOC_REQUIRES(process.lock) {
    const Address at = address_of(next_fresh);
    auto* made = next_fresh;
    if (align_up(at, os::page_size()) - at < sizeof(Resolved)) {
        made = static_cast<Resolved*>(os::map(os::page_size()));
        if (made == nullptr) return nullptr;
    }
    next_fresh = made + 1;
    return new (made) Resolved;
}

bool alone() {
    if (&__libc_single_threaded != nullptr) return __libc_single_threaded != 0;
    return process.mode == Mode::active && process.numbers() <= 1;
}

NodeId nearest_of(const os::NodeMask& nodes, NodeId from) {
    const os::Topology& topology = os::topology();
    for (unsigned k = 0; k < topology.nodes(); ++k)
        if (const NodeId n = topology.nearest(from, k); nodes.test(n.value)) return n;
    return from;
}

}  // namespace

void init_memory_home() {
    const MemoryPlacement& said = options().memory;
    of_process = {};
    if (const int error = resolve(said, of_process.nodes); error != 0) {
        os::Line line;
        line << "NUMALLOC_MEMORY names a node that "
             << (error == EINVAL ? "this machine does not have" : "this process may not use") << "; memory is local";
        os::say(line);
        of_process.nodes.clear();
    } else {
        of_process.said = said;
    }
    if (options().interleave == Interleave::off) return;
    if (names_nodes(of_process.said)) {
        os::Line line;
        line << "NUMALLOC_INTERLEAVE has no effect: it interleaves over all nodes, and NUMALLOC_MEMORY names some";
        os::say(line);
    } else if (options().interleave == Interleave::all) {
        of_process.said.kind = Kind::interleave;
    }
}

NodeId memory_home(Bytes wanted) { return memory_home_from(home_node(wanted)); }

NodeId memory_home_from(NodeId home) {
    if (process.mode == Mode::off) return home;
    const Resolved* const own = of_thread;
    const Resolved& placement = own != nullptr ? *own : of_process;
    switch (placement.said.kind) {
        case Kind::interleave: return os::topology().interleaved();
        case Kind::preferred:
        case Kind::bind: return nearest_of(placement.nodes, home);
        case Kind::local: break;
    }
    const bool is_serial = own == nullptr && options().interleave == Interleave::serial && alone();
    return is_serial ? os::topology().interleaved() : home;
}

bool memory_is_local() { return (of_thread != nullptr ? of_thread : &of_process)->said.kind == Kind::local; }

bool process_names_nodes() { return names_nodes(of_process.said); }

const os::NodeMask& bound_nodes() {
    static constinit const os::NodeMask none{};
    return of_process.said.kind == Kind::bind ? of_process.said.nodes : none;
}

const os::NodeMask* thread_spill_limit() {
    const Resolved& placement = of_thread != nullptr ? *of_thread : of_process;
    return placement.said.kind == Kind::bind ? &placement.nodes : nullptr;
}

const MemoryPlacement* thread_memory() { return of_thread != nullptr ? &of_thread->said : nullptr; }

int set_thread_memory(const MemoryPlacement* wanted) {
    if (wanted == nullptr) {
        of_thread = nullptr;
        return 0;
    }
    os::NodeMask nodes;
    if (const int error = resolve(*wanted, nodes); error != 0) return error;
    os::Guard guard(process.lock);
    Resolved* const first = known.load(std::memory_order_relaxed);
    for (Resolved* r = first; r != nullptr; r = r->next)
        if (r->said.kind == wanted->kind && r->said.nodes == wanted->nodes) {
            of_thread = r;
            return 0;
        }
    Resolved* const made = fresh();
    if (made == nullptr) return ENOMEM;
    made->said = *wanted;
    made->nodes = nodes;
    made->next = first;
    known.store(made, std::memory_order_release);
    of_thread = made;
    return 0;
}

}  // namespace numalloc::placement
