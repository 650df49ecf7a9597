#include "heap/thread/attach.h"

#include <new>

#include "base/tracepoints.h"
#include "heap/thread/deferred.h"
#include "heap/thread/hand_over.h"
#include "heap/thread/held.h"
#include "heap/thread/housekeeping.h"
#include "heap/thread/lists.h"
#include "os/between_steps.h"

namespace numalloc {

namespace policy::threads {

// The n-th thread heap of a node checks the pointers of its first 1,000 / n frees, and at least of 16; a reused heap
// checks at least 16 again. That finds the bugs of small programs, and long-running programs soon stop checking.
constexpr std::uint32_t frees_to_check = 1000;
constexpr std::uint32_t frees_to_check_again = 16;

// Before a node makes a new thread heap, it checks four heaps for threads that ended unnoticed. So it finds lost heaps
// as fast as it makes new ones.
constexpr unsigned dead_looked_for = 4;

}  // namespace policy::threads

namespace {

// Whether the slot's thread belongs to a parent process.
bool left_behind(const void* slot) {
    const auto* h = static_cast<const ThreadHeap*>(slot);
    return h->in_use.load(std::memory_order_relaxed) &&
           h->generation.load(std::memory_order_relaxed) != os::fork_gate.generation();
}

// Resets a heap left behind. Drops its lists, because the fork may have interrupted a change of them; not its remote
// cache, which only changes under a lock.
void take_over(ThreadHeap* h) {
    for (unsigned c = 1; c < class_count; ++c) {
        h->lists[c].sealed = nullptr;
        set_empty(h, c);
        count_held(h, c);
    }
    set_granted(h, 0);
    h->remote_cache.flush();
    h->lock_mark.inside.store(0, std::memory_order_relaxed);
    h->generation.store(os::fork_gate.generation(), std::memory_order_relaxed);
}

void return_slot(ThreadHeap* h) {
    profile::end_thread(h->profile);
    h->profile = nullptr;
    h->home->list_budget.take_back(h->granted);
    set_granted(h, 0);
    NodeHeap* const home = h->home;
    home->slots.give(home->pages.region(), h, h->in_use);
    // From here on another thread may use the slot, or may have returned its pages.
    os::between_steps();
    home->pages.set_threads(home->slots.taken());
}

// For a heap whose thread has ended.
void release(ThreadHeap* h) {
    hand_over_all(h, To::bags);
    return_slot(h);
}

void sign(ThreadHeap* h) {
    static constinit std::atomic<std::uint32_t> threads{0};
    static NUMALLOC_THREAD_LOCAL std::int32_t number = 0;
    if (number == 0)
        number = 1 + static_cast<std::int32_t>(threads.fetch_add(1, std::memory_order_relaxed) % INT32_MAX);
    h->thread = number;
    h->owner_name = owner_names.of_caller != nullptr ? owner_names.of_caller() : OwnerName{};
    h->owner.begin();
}

struct Dead {
    OwnerName name[policy::threads::dead_looked_for];
    unsigned count = 0;
};

// A thread can end without detach_thread(): its first malloc was in the last rounds of key destructors, or it ended by
// a raw system call.
void find_heaps_of_the_dead(NodeHeap* home, Dead& dead) NUMALLOC_REQUIRES(home->attaching) {
    const std::uint32_t made = home->slots.made();
    for (unsigned i = 0; i < min_of(policy::threads::dead_looked_for, made); ++i) {
        auto* const h = static_cast<ThreadHeap*>(home->slots.at(home->pages.region(), home->next_to_ask++ % made));
        if (!h->in_use.load(std::memory_order_acquire) || left_behind(h) || !h->owner.has_ended()) continue;
        for (unsigned c = 1; c < class_count; ++c) {
            if (h->head[c] == &end_of_list) continue;
            // The thread may have ended at any instruction: malloc may have cleared the first one's mark and not
            // removed it, and `room` may be wrong.
            set_mark(h->head[c]);
            std::int32_t held = 0;
            for (const Object* o = h->head[c]; o != nullptr; o = o->next) ++held;
            h->room[c] = h->lists[c].limit - held;
        }
        dead.name[dead.count++] = h->owner_name;
        release(h);
    }
}

// Returns a heap that is empty, or was left behind; nullptr without memory.
ThreadHeap* take_heap(NodeHeap* home, Dead& dead) {
    os::Guard guard(home->attaching);
    if (home->slots.used_up()) find_heaps_of_the_dead(home, dead);
    void* slot = home->slots.take(home->pages.region(), left_behind);
    if (slot == nullptr) return nullptr;
    home->pages.set_threads(home->slots.taken());
    home->ended.on_start(home->slots.taken());
    auto* h = static_cast<ThreadHeap*>(slot);
    if (left_behind(h)) {
        sign(h);
        return h;
    }
    // A reused heap is empty and keeps what it learned (capacities, checked_frees). It is not constructed again: a
    // thread that has just seen it in use may hold its remote cache's lock.
    if (h->home == nullptr) {
        new (slot) ThreadHeap{};
        h->home = home;
        h->remote_cache.start(home->node);
        h->fast_bound = home->pages.region().bound_for(address_of(h));
        const std::uint32_t number = home->slots.number_of(home->pages.region(), slot);
        h->checked_frees = policy::threads::frees_to_check / (number + 1);
        h->shard = static_cast<std::uint8_t>(process_heap.open_shard(home, number));
        for (unsigned i = 0; i < coarse_entries; ++i) h->coarse_class[i] = class_up_to(end_of_coarse(i));
    }
    h->generation.store(os::fork_gate.generation(), std::memory_order_relaxed);
    sign(h);
    h->in_use.store(true, std::memory_order_release);
    home->slots.show(home->pages.region(), h);
    return h;
}

void report(const Dead& dead) {
    for (unsigned i = 0; i < dead.count; ++i)
        if (owner_names.died != nullptr) owner_names.died(dead.name[i]);
}

// Hands over everything that the caller holds, and returns its heap. Returns false if a fork is in progress: then
// another thread does it later.
bool leave_heap(ThreadHeap* h) {
    trace::detach(h->home->node.value);
    const os::Inside inside;
    if (inside) hand_over_all(h, To::ring_if_empty);
    this_thread_heap = this_thread_operators = attached_heap = &no_heap;
    os::use_lock_mark(nullptr);
    if (inside) {
        h->owner.end();
        return_slot(h);
    } else {
        defer_detach(h);
    }
    return static_cast<bool>(inside);
}

}  // namespace

constinit OwnerNames owner_names{};

bool attach_thread(NodeId n) {
    NodeHeap* home = process_heap.node(n);
    Dead dead;
    ThreadHeap* const h = home == nullptr ? nullptr : take_heap(home, dead);
    report(dead);
    if (h == nullptr) return false;
    if (left_behind(h)) take_over(h);
    h->profile = profile::begin_thread(h->profile);
    h->checked_frees = max_of(h->checked_frees, policy::threads::frees_to_check_again);
    h->bias = home->pages.region().bias_for(address_of(h));
    h->freed_key = freed_key;
    h->bound = 0;
    this_thread_heap = attached_heap = h;
    if (operators_have_heap) this_thread_operators = h;
    os::use_lock_mark(&h->lock_mark);
    trace::attach(n.value);
    return true;
}

void detach_thread() {
    ThreadHeap* const h = attached_heap;
    if (h == &no_heap) return;
    NodeHeap* const home = h->home;
    if (leave_heap(h)) housekeeping_after_thread(home);
}

void hide_heap(bool hidden) {
    this_thread_heap = hidden ? &no_heap : attached_heap;
    if (operators_have_heap) this_thread_operators = this_thread_heap;
}

void release_deferred_heap(ThreadHeap* h) { release(h); }

void rehome_current_thread(NodeId node) {
    ThreadHeap* const h = attached_heap;
    if (h == &no_heap || h->home->node == node) return;
    leave_heap(h);
    // Without memory, or while a fork is in progress, the next malloc tries again.
    if (const os::Inside inside; inside) (void)attach_thread(node);
}

void forget_other_threads() {
    ThreadHeap* const own = attached_heap;
    if (own != &no_heap) {
        own->generation.store(os::fork_gate.generation(), std::memory_order_relaxed);
        sign(own);
    }
    for (unsigned n = 0; n < process_heap.heaps(); ++n)
        if (NodeHeap* node = process_heap.opened(NodeId{n})) {
            node->slots.leave_behind(own->home == node ? 1 : 0);
            node->list_budget.leave_behind(own->home == node ? own->granted : 0);
            node->pages.set_threads(node->slots.taken());
            node->ended.leave_behind(node->slots.taken());
        }
}

}  // namespace numalloc
