#include "heap/thread/deferred.h"

#include "heap/space/side.h"
#include "os/lock.h"

namespace numalloc {

struct Deferred {
    Deferred* next;
    void* p;           // an object, or a ThreadHeap
    const char* call;  // the function that freed the object; nullptr for a ThreadHeap
    std::uint32_t generation;
};

constinit std::atomic<Deferred*> deferred{nullptr};

namespace {

constinit os::Lock<os::LockRank::deferred> carrying_out;

bool record(void* p, const char* call) {
    auto* const one = static_cast<Deferred*>(side::allocate(sizeof(Deferred), granule));
    if (one == nullptr) return false;
    Deferred* first = deferred.load(std::memory_order_relaxed);
    do {
        *one = {first, p, call, os::fork_gate.generation()};
    } while (!deferred.compare_exchange_weak(first, one, std::memory_order_release, std::memory_order_relaxed));
    return true;
}

void carry_out(ThreadHeap* h) NUMALLOC_REQUIRES(carrying_out) {
    // Released, for catch_up(): who sees the list empty sees the lock held.
    for (Deferred* one = deferred.exchange(nullptr, std::memory_order_acq_rel); one != nullptr;) {
        const Deferred work = *one;
        side::free(one, "free");
        one = work.next;
        if (work.call != nullptr) free_slow(h, work.p, Freed::elsewhere, work.call);
        // Of a parent's thread: it may serve another one by now (left_behind() in attach.cpp).
        else if (work.generation == os::fork_gate.generation()) release_deferred_heap(static_cast<ThreadHeap*>(work.p));
    }
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
    if (os::lock_holder.libc_calls != 0 || os::lock_holder.depth != 0) return;
    if (deferred.load(std::memory_order_acquire) == nullptr && carrying_out.is_free()) return;
    while (!os::fork_gate.try_enter()) os::fork_gate.wait();
    {
        const os::Guard guard(carrying_out);
        carry_out(attached_heap);
    }
    os::fork_gate.leave();
}

void run_deferred(ThreadHeap* h) {
    if (!carrying_out.try_lock()) return;
    carry_out(h);
    carrying_out.unlock();
}

}  // namespace numalloc
