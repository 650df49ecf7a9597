#include "heap/thread/later.h"

#include "heap/space/side.h"

namespace numalloc {

struct LaterFree {
    LaterFree* next;
    void* p;
    const char* call;
};

constinit std::atomic<LaterFree*> later_frees{nullptr};
constinit std::atomic<ThreadHeap*> ended_heaps{nullptr};

bool free_later(ThreadHeap* h, void* p, Freed why, const char* call) {
    const Location at = locate(p);
    if (at.found == Found::side) {
        side::free(p, call);
        return true;
    }
    auto* const later = static_cast<LaterFree*>(side::allocate(sizeof(LaterFree), granule));
    if (later == nullptr) return false;
    // push() has taken a place that it did not find.
    if (why == Freed::full) h->room[0] = 0;
    if (why == Freed::full && at.owner == h->home) h->room[at.class_id.value] = 0;
    LaterFree* first = later_frees.load(std::memory_order_relaxed);
    do {
        *later = {first, p, call};
    } while (!later_frees.compare_exchange_weak(first, later, std::memory_order_release, std::memory_order_relaxed));
    return true;
}

void give_heap_later(ThreadHeap* h) {
    store_relaxed(h->process, 0);
    ThreadHeap* first = ended_heaps.load(std::memory_order_relaxed);
    do {
        h->next_ended = first;
    } while (!ended_heaps.compare_exchange_weak(first, h, std::memory_order_release, std::memory_order_relaxed));
}

void forget_heaps_to_give() { ended_heaps.store(nullptr, std::memory_order_relaxed); }

void free_what_waits(ThreadHeap* h) {
    for (ThreadHeap* ended = ended_heaps.exchange(nullptr, std::memory_order_acquire); ended != nullptr;) {
        ThreadHeap* const next = ended->next_ended;
        give_heap_of_ended(ended);
        ended = next;
    }
    for (LaterFree* later = later_frees.exchange(nullptr, std::memory_order_acquire); later != nullptr;) {
        const LaterFree one = *later;
        side::free(later, "free");
        later = one.next;
        free_slow(h, one.p, Freed::elsewhere, one.call);
    }
}

}  // namespace numalloc
