// A thread's heap: its lists of free objects, by size class. hot.h has the fast paths of malloc and free, refill.h and
// free.h the slow ones. No lock guards the lists: only the heap's thread changes them, or one that found it dead.
//
// Each class has two linked lists, so that the less recently used half can be handed over in O(1) without a comparison
// in free() (NUMAlloc, 3.5):
//
//   head[c] -> o -> o -> ... -> o -> null     current: both malloc and free work at its head
//   sealed  -> o -> o -> ... -> o -> null     the older half; full, untouched
//
//   length(current) == limit - room           room: how many objects free() may still add
//   head[c] is &end_of_list, never null       when current is empty; then room == 0
//
// A list that becomes current in malloc's slow path gets room for another `capacity` frees, so that a program that
// allocates and frees around a boundary does not cross it each time.
//
// Two sentinels save the fast paths a test for an empty list:
//   - malloc never pops the last object: it looks for a null `next`, and the slow path takes that last object. So
//     current becomes empty, and non-empty, only on slow paths.
//   - room[0] is always 0: a big object, or a pointer to no object, has class 0 in the bag map and thus fails the same
//     test as a full list.
#pragma once

#include <atomic>
#include <type_traits>

#include "base/bit_set.h"
#include "heap/guarded/guarded.h"
#include "heap/node/locate.h"
#include "heap/profile/profile.h"
#include "heap/space/mark.h"
#include "heap/thread/quarantine.h"
#include "heap/thread/remote_cache.h"
#include "os/fork_gate.h"
#include "os/lock.h"
#include "os/thread_life.h"

namespace numalloc {

extern Object end_of_list;

// What another part of the library calls a thread: OwnerNames in attach.h.
struct OwnerName {
    void* record = nullptr;
    std::uint64_t generation = 0;
};

struct ThreadHeap {
    constexpr ThreadHeap() : head() {
        for (Object*& list : head) list = &end_of_list;
    }

    // The hot part: what the fast paths read and write.
    Address bias = 0;
    Object* head[class_count];
    std::uint64_t bound = 0;      // 0: every free is slow. Behind `head`, or gcc 12 adds to each index of it
    std::uint64_t freed_key = 0;  // mark.h
    std::int32_t room[class_count] = {};
    std::uint8_t coarse_class[coarse_entries] = {};  // by coarse_entry()

    // The slow paths' part.
    struct Lists {
        Object* sealed;
        const Object* seen;  // head when hand_over_idle_class() or hold_less() last inspected the class
        std::uint16_t sealed_count;
        std::uint16_t limit;     // of current; see the equation above
        std::uint16_t capacity;  // the limit of the next batch: grows with demand
        std::uint16_t held;      // objects of the class in ThreadHeap::held: count_held()
    };
    Lists lists[class_count] = {};
    NodeHeap* home = nullptr;
    profile::ThreadProfile* profile = nullptr;  // set if the heap profile watches the thread: no push() succeeds
    guarded::Countdown guarded;                 // allocations until one is guarded
    std::uint64_t fast_bound = 0;               // what `bound` is once fast frees are on
    std::uint32_t checked_frees = 0;            // how many frees are checked before that
    std::uint32_t slow_paths = 0;               // a clock that ticks for housekeeping
    std::uint32_t last_cheap_path = 0;          // housekeeping_if_rare(): when, in milliseconds,
    std::uint32_t cheap_paths_to_pass = 0;      // and how many follow that it passes over
    std::uint32_t trims_seen = 0;               // ask_others_to_flush()
    std::uint32_t next_to_look_at = 1;          // the class that hand_over_idle_class() inspects next
    std::uint8_t large_classes[2] = {};         // with an object that is a whole batch: keep_large()
    std::uint32_t emptied = 0;                  // four bytes: the classes above 4 KiB whose lists ran empty last
    BitSet<align_up(class_count, 64)> filled;   // the classes with lists[c].held != 0, and maybe others: hold_less()
    Bytes held = 0;                             // bytes: an upper bound of what the lists hold, count_held()
    Bytes may_hold = policy::lists::any_may_hold;
    Bytes granted = 0;  // of the node's list_budget
    os::ThreadLife owner;
    OwnerName owner_name;
    std::int32_t thread = 0;  // numalloc's number of the thread, above 0, which it keeps for life
    std::atomic<bool> in_use{false};
    std::uint8_t shard = 0;                    // of each class's bags: class_heap.h
    std::atomic<std::uint32_t> generation{0};  // of the process whose thread has it: fork_gate.h
    os::LockMark lock_mark;
    RemoteCache remote_cache;
    [[no_unique_address]] std::conditional_t<hardened, Quarantine, NoQuarantine> quarantine;
};

// The heap of threads that have none: all lists empty, all frees slow.
extern ThreadHeap no_heap;

extern NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_heap;

// The heap that operator new and delete use: the same, or always no_heap if the process replaces functions that they
// must call. So their fast paths need no test.
extern NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_operators;

// The calling thread's heap, or no_heap: this_thread_heap is no_heap as well within a LibcCall (os/libc_call.h).
extern NUMALLOC_THREAD_LOCAL ThreadHeap* attached_heap;

// Set before the first thread is attached.
extern bool operators_have_heap;

// Visits all thread heaps in use, also those left behind by a fork: for the fork handlers, housekeeping and the
// statistics.
template <class Visit>
void for_each_thread_heap(Visit visit) {
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* node = process_heap.opened(NodeId{n});
        if (node == nullptr) continue;
        const SlotPool::Walk walk(node->slots);
        const std::uint32_t made = walk.made();
        for (std::uint32_t i = 0; i < made; ++i) {
            auto* h = static_cast<ThreadHeap*>(node->slots.at(node->pages.region(), i));
            if (h->in_use.load(std::memory_order_acquire)) visit(h);
        }
    }
}

}  // namespace numalloc
