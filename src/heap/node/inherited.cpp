// The memory that the child of a fork has from its parent. Both share its pages until one of them writes to one: then
// the writer gets a copy, and the kernel places that by the policy of the memory. Bound to its node, it would be copied
// to where the parent ran, and a worker on another node would have every page that it writes far away. So the child's
// memory is no longer bound:
//
//   first_bag ... inherited: by first touch ... bound_from ... what the child maps itself: bound to its node ...
//
// Invariant: bags from bound_from on are bound; those before are not, unless the kernel refused to unbind them.
//
// The threads that allocate from a node's heap run on that node, so memory that was free and untouched at the fork is
// still local. What the child writes and then frees is on the child's node: a thread of another node that gets it next
// has it remote, as under glibc.
//
// realloc gives inherited blocks a place on the thread's node, because nobody has placed them. If that is another one,
// a long block still takes its pages along, and bound_from rises to the end of its place, as it does when a block grows
// there. A policy that the program gave to a block with mbind() is lost in the child.
//
// A program that names nodes for memory gets it there, whoever touches it first. If it did so before the fork, all
// memory stays bound (blocks may have a policy of their own, too). If it does so later, the child's is bound again, and
// pages of its own that are elsewhere move. Interleaved memory is spread on purpose and always stays so.
#include "heap/node/locate.h"

namespace numalloc {

void ProcessHeap::fork_child() {
    if (nodes_ == 1 || options_.memory_binding != MemoryBinding::preferred) return;
    if (inheritance_.load(std::memory_order_relaxed) != Inheritance::by_touch) return;
    for (unsigned n = 0; n < heaps(); ++n)
        if (NodeHeap* const node = opened(NodeId{n}); node != nullptr && NodeId{n} != interleaved())
            node->pages.unbind();
}

bool ProcessHeap::is_inherited(Location at) {
    const bool in_region = at.found == Found::small || at.found == Found::big || at.found == Found::bound;
    return in_region && at.bag < at.owner->pages.region().bound_from();
}

void ProcessHeap::bind_inherited() {
    inheritance_.store(Inheritance::to_bind, std::memory_order_relaxed);
    const os::Inside inside;
    if (!inside) return;  // beside a fork that takes long: the next call that names a node does it
    for (unsigned n = 0; n < heaps(); ++n)
        if (NodeHeap* const node = opened(NodeId{n}); node != nullptr) node->pages.bind_again();
    inheritance_.store(Inheritance::bound, std::memory_order_release);
}

}  // namespace numalloc
