#include "heap/thread/fork.h"

#include "heap/thread/attach.h"
#include "heap/thread/deferred.h"
#include "heap/thread/housekeeping.h"
#include "os/brief_wait.h"

namespace numalloc {

namespace {

// Waits until no thread is inside. Only reads each thread's mark. Locks taken here would be released after the fork,
// which would copy their pages.
bool wait_for_threads(std::uint32_t sleeps) {
    const std::uint32_t generation = os::fork_gate.generation();
    std::uint32_t changed;
    bool all_outside;
    do {
        changed = os::fork_gate.mark_changes();
        all_outside = os::fork_gate.wait_for_sharers(sleeps);
        for_each_thread_heap([&](ThreadHeap* h) {
            const bool ours = h->generation.load(std::memory_order_relaxed) == generation;
            if (ours && h != attached_heap) all_outside = os::ForkGate::wait_for(h->lock_mark, sleeps) && all_outside;
        });
    } while (all_outside && changed != os::fork_gate.mark_changes());
    return all_outside;
}

}  // namespace

void heap_fork_prepare() {
    os::fork_gate.close();
    if (os::ForkGate::waits()) wait_for_threads(os::without_end);
}

bool heap_fork_prepare_briefly() {
    std::uint32_t sleeps = os::many_sleeps;
    if (!os::ForkGate::waits() || !os::fork_gate.is_process() || !os::fork_gate.try_close(sleeps)) return false;
    if (wait_for_threads(sleeps)) return true;
    heap_fork_parent();
    return false;
}

void heap_fork_parent() {
    defer_side_trim();
    os::fork_gate.open();
}

void heap_fork_child() {
    os::fork_gate.become_child();
    process_heap.fork_child();
    defer_side_trim();
    forget_other_threads();
    // Housekeeping would copy pages of every thread's heap, and most children end soon.
    put_off_housekeeping();
    os::fork_gate.open();
}

}  // namespace numalloc
