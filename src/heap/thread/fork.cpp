#include "heap/thread/fork.h"

#include "heap/thread/attach.h"
#include "heap/thread/deferred.h"
#include "heap/thread/housekeeping.h"

namespace numalloc {

// Only reads each thread's mark. Locks taken here would be released after the fork, which would copy their pages.
void heap_fork_prepare() {
    os::fork_gate.close();
    if (!os::ForkGate::waits()) return;
    const std::uint32_t generation = os::fork_gate.generation();
    std::uint32_t changed;
    do {
        changed = os::fork_gate.mark_changes();
        os::fork_gate.wait_for_sharers();
        for_each_thread_heap([=](ThreadHeap* h) {
            const bool ours = h->generation.load(std::memory_order_relaxed) == generation;
            if (ours && h != attached_heap) os::fork_gate.wait_for(h->lock_mark);
        });
    } while (changed != os::fork_gate.mark_changes());
}

void heap_fork_parent() {
    defer_side_trim();
    os::fork_gate.open();
}

void heap_fork_child() {
    os::fork_gate.become_child();
    defer_side_trim();
    forget_other_threads();
    // Housekeeping would copy pages of every thread's heap, and most children end soon.
    put_off_housekeeping();
}

}  // namespace numalloc
