// Blocks and heaps over a set of nodes.
#include <atomic>

#include "api/export.h"
#include "api/extension/node_sets.h"
#include "api/extension/on_node.h"
#include "api/malloc/initialise.h"
#include "heap/program_heaps/bound_heap.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

// Small blocks take the nodes in turn, by this counter.
constinit std::atomic<unsigned> turn{0};
unsigned next_turn(unsigned of) { return turn.fetch_add(1, std::memory_order_relaxed) % of; }

void* invalid() {
    errno = EINVAL;
    return nullptr;
}

// Allocates on `first`, or on the nearest other node of the set that has room.
Allocation allocate_within(Bytes n, const ChosenNodes& nodes, NodeId first) {
    // A thread's first call sets the limit as well, so its heap is made first.
    if (const os::Inside inside; inside && attached_heap == &no_heap) (void)thread_heap_slow();
    const os::NodeMask* const of_thread = thread_spill_limit;
    thread_spill_limit = &nodes.ours;
    const Allocation object = allocate_on_node(n, 1, first);
    thread_spill_limit = of_thread;
    return object;
}

void* or_no_memory(void* p, Bytes n) {
    if (p != nullptr) return p;
    const auto next = NUMALLOC_ASIDE(malloc);
    return next != nullptr ? next(n) : no_memory();
}

// Allocates a large block and spreads its pages. Small blocks share pages, which cannot be spread.
void* spread(Bytes n, const ChosenNodes& nodes, const Spread& how) {
    void* const p = allocate_within(n, nodes, nodes.nearest()).p;
    if (p != nullptr) spread_big(locate(p), how);
    return or_no_memory(p, n);
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT void* numalloc_malloc_on_set(size_t size, enum numalloc_policy policy,
                                             const numalloc_node_set* set) noexcept {
    ChosenNodes nodes;
    if (!nodes.choose(*set)) return nullptr;
    const bool large = size > largest_small;
    switch (policy) {
        case NUMALLOC_INTERLEAVE:
            if (large && nodes.all_usable()) return malloc_there(size, process_heap.interleaved());
            if (large) return spread(size, nodes, {Spread::How::interleaved, nullptr, nodes.of_kernel});
            return or_no_memory(allocate_within(size, nodes, nodes.at(next_turn(nodes.ours.count()))).p, size);
        case NUMALLOC_BIND:
            if (large) return spread(size, nodes, {Spread::How::bound, nullptr, nodes.of_kernel});
            return or_no_memory(allocate_within(size, nodes, nodes.nearest()).p, size);
        case NUMALLOC_PREFER:
            if (void* const p = allocate_within(size, nodes, nodes.nearest()).p) return p;
            return malloc_there(size, nodes.nearest());
        default: return invalid();
    }
}

NUMALLOC_EXPORT void* numalloc_malloc_weighted(size_t size, const numalloc_node_set* set,
                                               const unsigned char* weights) noexcept {
    ChosenNodes nodes;
    if (!nodes.choose(*set)) return nullptr;
    unsigned sum = 0;
    for (unsigned i = 0; i < nodes.ours.count(); ++i) {
        if (weights[i] == 0) return invalid();
        sum += weights[i];
    }
    if (size > largest_small) return spread(size, nodes, {Spread::How::weighted, weights, nodes.of_kernel});
    unsigned mine = next_turn(sum);
    unsigned k = 0;
    for (; mine >= weights[k]; ++k) mine -= weights[k];
    return or_no_memory(allocate_within(size, nodes, nodes.at(k)).p, size);
}

NUMALLOC_EXPORT numalloc_heap* numalloc_heap_create_on_set(enum numalloc_policy policy,
                                                           const numalloc_node_set* set) noexcept {
    ChosenNodes nodes;
    if (!nodes.choose(*set)) return nullptr;
    Spread how;
    how.nodes = nodes.of_kernel;
    switch (policy) {
        case NUMALLOC_INTERLEAVE: how.how = Spread::How::interleaved; break;
        case NUMALLOC_BIND: how.how = Spread::How::bound; break;
        case NUMALLOC_PREFER: break;
        default: return static_cast<numalloc_heap*>(invalid());
    }
    if (process_heap.nodes() == 1) how.how = Spread::How::not_at_all;
    const os::NodeMask* const within = policy == NUMALLOC_PREFER ? nullptr : &nodes.ours;
    BoundHeap* const h = process_heap.started() ? BoundHeap::create(nodes.nearest(), how, within) : nullptr;
    return h != nullptr ? reinterpret_cast<numalloc_heap*>(h) : static_cast<numalloc_heap*>(no_memory());
}

}  // extern "C"
