#include "heap/thread/deferred.h"

#include "heap/program_heaps/bound_heap.h"
#include "heap/space/side.h"
#include "heap/thread/attach.h"
#include "heap/thread/free.h"
#include "os/lock.h"

namespace numalloc {

// p != nullptr, call != nullptr: an object, and the function that freed it
// p != nullptr, call == nullptr: a ThreadHeap
// p == nullptr:                  the side heap is to be trimmed
struct Deferred {
    Deferred* next;
    void* p;
    const char* call;
    std::uint32_t generation;
};

constinit std::atomic<Deferred*> deferred{nullptr};

namespace {

// Held while one record is removed from the list and, if it is a bound heap's object, until the object is taken back.
// All other work is done without it: another library's replacement of munmap() or madvise() may wait for a thread in
// catch_up().
constinit os::Lock<os::LockRank::deferred> taking;
constinit Deferred trim_side{};
constinit std::atomic<bool> trims_side{false};

void add(Deferred* one) {
    one->next = deferred.load(std::memory_order_relaxed);
    while (!deferred.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {}
}

bool record(void* p, const char* call) {
    auto* const one = static_cast<Deferred*>(side::allocate(sizeof(Deferred), granule).p);
    if (one == nullptr) return false;
    *one = {nullptr, p, call, os::fork_gate.generation()};
    add(one);
    return true;
}

// Removes the first record. Other threads only prepend records, so the link is valid (no ABA).
Deferred* take_first() NUMALLOC_REQUIRES(taking) {
    Deferred* first = deferred.load(std::memory_order_acquire);
    // The exchange releases for catch_up(): a thread that sees the list without the record sees the lock held.
    while (first != nullptr &&
           !deferred.compare_exchange_weak(first, first->next, std::memory_order_acq_rel, std::memory_order_acquire)) {}
    return first;
}

// The first step of a free of a bound heap's object.
void take_back(Location at, const Deferred& work, BoundHeap::Emptied& emptied) {
    const char* why = profile::on() ? profile::freeing(at, work.p) : nullptr;
    if (why == nullptr) why = BoundHeap::take_back(at, work.p, emptied);
    if (why != nullptr) die_of_invalid_pointer(work.call, work.p, why);
}

void carry_out(ThreadHeap* h, const Deferred& work) {
    if (work.p == nullptr) side::trim();
    else if (work.call != nullptr) free_object(h, work.p, Pushed::elsewhere, work.call);
    // A heap that the parent recorded may serve another thread by now (left_behind() in attach.cpp).
    else if (work.generation == os::fork_gate.generation()) release_deferred_heap(static_cast<ThreadHeap*>(work.p));
}

// Does the first recorded work. Returns whether there may be more.
bool carry_out_first(ThreadHeap* h) NUMALLOC_RELEASES(taking) {
    Deferred* const one = take_first();
    if (one == nullptr) return taking.unlock(), false;
    const Deferred work = *one;
    const Location at = work.call != nullptr ? locate(work.p) : Location{};
    BoundHeap::Emptied emptied;
    if (at.found == Found::bound) take_back(at, work, emptied);
    taking.unlock();
    if (one == &trim_side) trims_side.store(false, std::memory_order_release);
    else side::free(one, "free");
    if (at.found == Found::bound) BoundHeap::give(emptied);
    else carry_out(h, work);
    return true;
}

}  // namespace

bool defer_free(ThreadHeap* h, void* p, Pushed why, const char* call) {
    const Location at = locate(p);
    if (at.found == Found::side) {
        side::free(p, call);
        return true;
    }
    if (!record(p, call)) return false;
    // push() decremented the room of the list, or of class 0.
    if (why == Pushed::full) h->room[0] = 0;
    if (why == Pushed::full && at.owner == h->home) h->room[at.class_id.value] = 0;
    if (why == Pushed::again) ++h->room[at.class_id.value];
    return true;
}

void defer_detach(ThreadHeap* h) {
    // Before the record: otherwise another thread might find the owner dead and release the heap, too.
    h->owner.end();
    (void)record(h, nullptr);
}

void defer_side_trim() {
    if (!trims_side.exchange(true, std::memory_order_acquire)) add(&trim_side);
}

bool try_catch_up() {
    if (os::lock_holder.libc_calls != 0 || os::lock_holder.depth != 0) return true;
    if (deferred.load(std::memory_order_acquire) == nullptr && taking.is_free()) return true;
    if (!os::fork_gate.try_enter()) return false;
    do taking.lock();
    while (carry_out_first(attached_heap));
    os::fork_gate.leave();
    return true;
}

void catch_up() {
    while (!try_catch_up()) os::fork_gate.wait();
}

void run_deferred(ThreadHeap* h) {
    while (taking.try_lock() && carry_out_first(h)) {}
}

}  // namespace numalloc
