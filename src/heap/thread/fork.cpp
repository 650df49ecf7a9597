#include "heap/thread/fork.h"

#include "heap/node/bound_heap.h"
#include "heap/thread/thread_heap.h"

namespace numalloc {

namespace {

// Visits every lock of the heap but its own, in the order of LockRank.
template <class Visit>
void for_each_inner_lock(Visit visit) {
    for_each_thread_heap([&](ThreadHeap* h) { visit(h->outbox.lock()); });
    BoundHeap::for_each([&](BoundHeap* h) { visit(h->lock()); });
    const auto each_node = [&](auto visit_node) {
        for (unsigned n = 0; n < heap.heaps(); ++n)
            if (NodeHeap* node = heap.opened(NodeId{n})) visit_node(*node);
    };
    each_node([&](NodeHeap& node) {
        for (unsigned i = 0; i < class_shares; ++i)
            for (unsigned c = 1; node.shares().is_open(i) && c < class_count; ++c) visit(node.shares().at(i, ClassId{c}).lock);
    });
    each_node([&](NodeHeap& node) { visit(node.big.lock()); });
    each_node([&](NodeHeap& node) { visit(node.slots.lock()); });
}

}  // namespace

// heap.lock() comes first and goes last: threads attach and detach, shares are opened and bound heaps come
// and go under it, so the set of locks stands from the first to the last release.
void heap_fork_prepare() {
    heap.lock().lock();
    for_each_inner_lock([](auto& lock) { lock.lock(); });
}

void heap_fork_parent() {
    for_each_inner_lock([](auto& lock) { lock.unlock(); });
    heap.lock().unlock();
}

void heap_fork_child() {
    for_each_inner_lock([](auto& lock) { lock.reset_after_fork(); });
    heap.lock().reset_after_fork();
    forget_other_threads();
}

}  // namespace numalloc
