#include "heap/thread/later.h"

#include "heap/space/side.h"

namespace numalloc {

struct LaterFree {
    LaterFree* next;
    void* p;           // an object, or a heap
    const char* call;  // that freed the object; nullptr: a heap
};

constinit std::atomic<LaterFree*> later_frees{nullptr};

namespace {

bool note(void* p, const char* call) {
    auto* const later = static_cast<LaterFree*>(side::allocate(sizeof(LaterFree), granule));
    if (later == nullptr) return false;
    LaterFree* first = later_frees.load(std::memory_order_relaxed);
    do {
        *later = {first, p, call};
    } while (!later_frees.compare_exchange_weak(first, later, std::memory_order_release, std::memory_order_relaxed));
    return true;
}

}  // namespace

bool free_later(ThreadHeap* h, void* p, Freed why, const char* call) {
    const Location at = locate(p);
    if (at.found == Found::side) {
        side::free(p, call);
        return true;
    }
    if (!note(p, call)) return false;
    // push() has taken a place that it did not find.
    if (why == Freed::full) h->room[0] = 0;
    if (why == Freed::full && at.owner == h->home) h->room[at.class_id.value] = 0;
    return true;
}

void give_heap_later(ThreadHeap* h) {
    const std::int32_t process = h->process;
    // From now on nobody else finds it.
    store_relaxed(h->process, 0);
    if (!note(h, nullptr)) store_relaxed(h->process, process);
}

void free_what_waits(ThreadHeap* h) {
    for (LaterFree* later = later_frees.exchange(nullptr, std::memory_order_acquire); later != nullptr;) {
        const LaterFree one = *later;
        side::free(later, "free");
        later = one.next;
        if (one.call != nullptr) free_slow(h, one.p, Freed::elsewhere, one.call);
        else give_heap_of_ended(static_cast<ThreadHeap*>(one.p));
    }
}

}  // namespace numalloc
