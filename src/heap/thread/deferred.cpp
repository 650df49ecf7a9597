#include "heap/thread/deferred.h"

#include "heap/space/side.h"

namespace numalloc {

struct Deferred {
    Deferred* next;
    void* p;           // an object, or a ThreadHeap
    const char* call;  // the function that freed the object; nullptr for a ThreadHeap
    std::uint32_t generation;
};

constinit std::atomic<Deferred*> deferred{nullptr};

namespace {

bool record(void* p, const char* call) {
    auto* const one = static_cast<Deferred*>(side::allocate(sizeof(Deferred), granule));
    if (one == nullptr) return false;
    Deferred* first = deferred.load(std::memory_order_relaxed);
    do {
        *one = {first, p, call, os::fork_gate.generation()};
    } while (!deferred.compare_exchange_weak(first, one, std::memory_order_release, std::memory_order_relaxed));
    return true;
}

}  // namespace

bool defer_free(ThreadHeap* h, void* p, Freed why, const char* call) {
    const Location at = locate(p);
    if (at.found == Found::side) {
        side::free(p, call);
        return true;
    }
    if (!record(p, call)) return false;
    // push() decremented the room of a full list, or of class 0.
    if (why == Freed::full) h->room[0] = 0;
    if (why == Freed::full && at.owner == h->home) h->room[at.class_id.value] = 0;
    return true;
}

void defer_detach(ThreadHeap* h) {
    // First, or another thread might find it dead and release it, too.
    h->owner.end();
    (void)record(h, nullptr);
}

void catch_up() {
    if (!any_deferred() || os::lock_holder.libc_calls != 0 || os::lock_holder.depth != 0) return;
    while (!os::fork_gate.try_enter()) os::fork_gate.wait();
    run_deferred(attached_heap);
    os::fork_gate.leave();
}

void run_deferred(ThreadHeap* h) {
    for (Deferred* one = deferred.exchange(nullptr, std::memory_order_acquire); one != nullptr;) {
        const Deferred work = *one;
        side::free(one, "free");
        one = work.next;
        if (work.call != nullptr) free_slow(h, work.p, Freed::elsewhere, work.call);
        // Of a parent's thread: it may serve another one by now (left_behind() in attach.cpp).
        else if (work.generation == os::fork_gate.generation()) release_deferred_heap(static_cast<ThreadHeap*>(work.p));
    }
}

}  // namespace numalloc
