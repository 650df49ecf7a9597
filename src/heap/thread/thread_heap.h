// A thread and its lists. What malloc and free do almost every time is here, inline; it takes no
// lock, makes no system call and touches no other node's metadata.
//
// A class's free objects are held in two linked lists, so that the least recently used half can
// be handed over in O(1) without any comparison in free() (paper 3.5; see docs/design.md):
//
//   head[c] -> o -> o -> ... -> o -> null     current: both malloc and free work at its head
//   sealed  -> o -> o -> ... -> o -> null     the older half; full, untouched
//
//   length(current) == limit - room           room: what free() may still add
//   head[c] is &end_of_list, never null       when current is empty; then room == 0
//   limit <= 2 * capacity, sealed_count <= 2 * capacity at the time they were set
//
// A list that comes into place by malloc's slow path gets room for another `capacity` frees: a
// program that mallocs and frees around a boundary does not cross it each time.
//
// Two sentinels save the tests that would ask for an empty list:
//   - malloc never pops the last object: it looks for a null `next`, and the slow path takes
//     that last one. So current becomes empty, and non-empty, only on slow paths.
//   - room[0] is always 0: a big object, or a pointer that is none, has class 0 in the bag map
//     and thus fails the same test as a full list.
// free() adds `bias` (address_space.h has the equation): one unsigned comparison with `bound`, or
// class 0, sends NULL, foreign pointers, other nodes' objects, and threads without a heap (whose bound is 0) to
// the slow path. A new heap's first frees take it too, where it is asked whether an object begins there: enough to
// catch the bug of a small program, nothing to a long-running one. While the heap profile is on all frees take it
// (heap/profile/profile.h). That the object is not free already, and is when it is handed out, is asked each time:
// freed.h.
#pragma once

#include <atomic>
#include <type_traits>

#include "base/atomic.h"
#include "base/bit_set.h"
#include "heap/guarded/guarded.h"
#include "heap/process/locate.h"
#include "heap/profile/profile.h"
#include "heap/space/freed.h"
#include "heap/thread/quarantine.h"
#include "heap/thread/remote_cache.h"
#include "os/fork_gate.h"
#include "os/lock.h"
#include "os/thread_life.h"

namespace numalloc {

extern Object end_of_list;

struct ThreadHeap {
    constexpr ThreadHeap() : head() {
        for (Object*& list : head) list = &end_of_list;
    }

    // The hot part: what the fast paths read and write.
    Address bias = 0;
    Object* head[class_count];
    std::uint64_t bound = 0;      // 0: every free is slow. Not in front: gcc 12 would add to each index of head
    std::uint64_t freed_key = 0;  // freed.h
    std::int32_t room[class_count] = {};
    std::uint8_t medium_class[medium_entries] = {};  // by (size + 127) / 128

    // The slow paths' part.
    struct Lists {
        Object* sealed;
        const Object* seen;  // head at the last look of give_idle_class() or hold_less()
        std::uint16_t sealed_count;
        std::uint16_t limit;     // of current; see the equation above
        std::uint16_t capacity;  // the limit of the next batch: grows with demand
        std::uint16_t held;      // objects of the class in ThreadHeap::held: count_held()
    };
    Lists lists[class_count] = {};
    NodeHeap* home = nullptr;
    profile::ThreadProfile* profile = nullptr;  // of a thread that the heap profile watches; then no free is fast
    guarded::Countdown guarded;                 // allocations until one is guarded
    std::uint64_t fast_bound = 0;               // what `bound` is once fast frees are on
    std::uint32_t checked_frees = 0;            // still to come before that
    std::uint32_t slow_paths = 0;               // a clock that ticks for housekeeping
    std::uint32_t trims_seen = 0;               // ask_others_to_flush()
    std::uint32_t next_to_look_at = 1;          // the class that give_idle_class() looks at next
    std::uint8_t large_classes[2] = {};         // of one object a batch, that may have one: keep_large()
    BitSet<128> filled;                         // the classes with lists[c].held != 0, and maybe others: hold_less()
    Bytes held = 0;                             // bytes: an upper bound of what the lists hold, count_held()
    Bytes may_hold = policy::any_may_hold;
    Bytes granted = 0;  // of the node's list_budget
    os::ThreadLife owner;
    std::int32_t thread = 0;  // a number of ours, above 0, the same for the whole life of the thread
    std::atomic<bool> in_use{false};
    std::uint8_t shard = 0;                    // of each class's bags: class_heap.h
    std::atomic<std::uint32_t> generation{0};  // of the process whose thread has it: fork_gate.h
    os::LockMark lock_mark;
    RemoteCache remote_cache;
    [[no_unique_address]] std::conditional_t<hardened, Quarantine, NoQuarantine> quarantine;
};

static_assert(class_count <= 128);

// Stands for the heap of a thread that has none: all lists empty, all frees slow.
extern ThreadHeap no_heap;

extern NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_heap;

// What operator new and delete look at: the same heap, or no_heap for good where the process has functions of
// its own that they must go through. So their fast paths need not ask.
extern NUMALLOC_THREAD_LOCAL ThreadHeap* this_thread_operators;

// The calling thread's heap, or no_heap: this_thread_heap is no_heap as well within a LibcCall (os/libc_call.h).
extern NUMALLOC_THREAD_LOCAL ThreadHeap* attached_heap;

// Said before the first thread is attached.
extern bool operators_have_heap;

// Keeps the heap and the class index out of the register that returns the result, which saves a
// move in each of malloc's paths; no instruction.
NUMALLOC_INLINE void keep_out_of_result(ThreadHeap*& heap, std::size_t& c) {
#if defined(__x86_64__)
    __asm__("" : "+d"(heap), "+c"(c));
#else
    (void)heap;
    (void)c;
#endif
}

// --room < 0, in one instruction and its flag: gcc 12 needs one more for the address.
NUMALLOC_INLINE bool decrement_below_zero(std::int32_t& room) {
#if defined(__x86_64__)
    bool negative;
    __asm__("subl $1, %0" : "+m"(room), "=@ccs"(negative));
    return negative;
#else
    return --room < 0;
#endif
}

// Whether the object may be in the heap's list of the class: a written link leads anywhere, and its mark may be forged.
// The same question as push() asks; only the hardened library asks it here.
NUMALLOC_INLINE bool is_of_class(const ThreadHeap* heap, std::size_t c, const Object* object) {
    const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;
    return j < heap->fast_bound && load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j)) == c;
}

// The fast path of malloc: nullptr when the slow path is needed, or the list is damaged. `Copy` numbers the calls
// within one function, so that the compiler does not merge their ends.
template <int Copy = 0>
NUMALLOC_INLINE void* pop(ThreadHeap* heap, std::size_t c) {
    keep_out_of_result(heap, c);
    Object* const object = heap->head[c];
    if constexpr (hardened)
        if (object != &end_of_list && !is_of_class(heap, c, object)) die_of_damage(object);
    Object* const next = object->next;
    if (NUMALLOC_UNLIKELY(next == nullptr)) return nullptr;
    if (NUMALLOC_UNLIKELY(!take_mark(object, heap->freed_key))) return put_mark_back(object, heap->freed_key);
    if constexpr (hardened)
        if (!is_as_it_was(object, ClassId{static_cast<unsigned>(c)})) return put_mark_back(object, heap->freed_key);
    heap->head[c] = next;
    ++heap->room[c];
    arm(object, ClassId{static_cast<unsigned>(c)});
    __asm__ volatile("" : : "i"(Copy));
    return object;
}

// Puts a freed object in front.
NUMALLOC_INLINE void link(ThreadHeap* heap, std::size_t c, Object* object) {
    object->mark = mark_of(object, heap->freed_key);
    object->next = heap->head[c];
    heap->head[c] = object;
}

// Frees an object that leaves the quarantine. It may belong to any thread, node or program heap.
void free_from_quarantine(ThreadHeap* heap, Object* object);
NUMALLOC_INLINE void leave_quarantine(ThreadHeap* heap, Object* object) {
    const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return free_from_quarantine(heap, object);
    const std::size_t c = load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j));
    if (NUMALLOC_UNLIKELY(heap->room[c] <= 0 || !rests_alone(object))) return free_from_quarantine(heap, object);
    --heap->room[c];
    link(heap, c, object);
}

// The fast path of free. What it returns says who must go on.
enum class Freed { done, elsewhere, full, again };

// The hardened library's: all that the slow path asks, as far as it can be asked without a look at the bag. It is said
// to be elsewhere where anything is not as it should be.
NUMALLOC_INLINE Freed push_checked(ThreadHeap* heap, void* p, Origin origin) {
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Freed::elsewhere;
    const ClassId c{load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j))};
    const Bytes size = shape_of(c).size;
    const Bytes offset = address_of(p) & (bag_bytes - 1);
    auto* const object = static_cast<Object*>(p);
    if (NUMALLOC_UNLIKELY(shape_of(c).bags != 1 || offset != object_at(c, offset) * size || offset + size > bag_bytes ||
                          was_freed(object)))
        return Freed::elsewhere;
    if (NUMALLOC_UNLIKELY(origin_at(object, size) != origin)) return Freed::elsewhere;
    make_freed(object, size);
    if (Object* const out = heap->quarantine.exchange(object, size)) leave_quarantine(heap, out);
    return Freed::done;
}

NUMALLOC_INLINE Freed push(ThreadHeap* heap, void* p, [[maybe_unused]] Origin origin = origin_of(Form::malloc, 0)) {
    if constexpr (hardened) return push_checked(heap, p, origin);
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Freed::elsewhere;
    const auto* const byte = reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j;
    const std::size_t c = load_relaxed(*byte);
    if (NUMALLOC_UNLIKELY(decrement_below_zero(heap->room[c]))) return Freed::full;
    auto* const object = static_cast<Object*>(p);
    if (NUMALLOC_UNLIKELY(object->mark == mark_of(object, heap->freed_key))) return Freed::again;
    link(heap, c, object);
    return Freed::done;
}

// push() for a thread that the heap profile watches: the list may not hold more objects than are allocated before the
// next recorded malloc.
NUMALLOC_INLINE bool push_counted(ThreadHeap* heap, void* p) {
    profile::ThreadProfile& counts = *heap->profile;
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= counts.bound)) return false;
    const std::size_t c = load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j));
    if (NUMALLOC_UNLIKELY(decrement_below_zero(counts.left[c]))) return ++counts.left[c], false;
    if (NUMALLOC_UNLIKELY(decrement_below_zero(heap->room[c]))) return ++heap->room[c], ++counts.left[c], false;
    auto* const object = static_cast<Object*>(p);
    if (NUMALLOC_UNLIKELY(was_freed(object))) return ++heap->room[c], ++counts.left[c], false;
    link(heap, c, object);
    return true;
}

// Creates the calling thread's heap on the node. false with no memory for it.
bool attach_thread(NodeId n);

// Hands over everything that the calling thread holds. Its later calls do without a heap of
// their own, until attach_thread().
void detach_thread();

// For os::at_libc_call.
void at_libc_call(bool begins);

// The same for a heap that defer_detach() recorded, by another thread.
void release_deferred_heap(ThreadHeap* h);

// Hands over what the calling thread holds, but leaves it its heap.
void flush_thread();
// Every other thread does so with its lists at one of its next slow paths. A thread that waits keeps them until then.
void ask_others_to_flush();

// An object of the class from any node, for a request of `asked` bytes. Where the node is full as take_small() says;
// `h` may be &no_heap.
Allocation allocate_on(ThreadHeap* h, NodeId n, ClassId c, Bytes asked);

// An object of the class, when pop() had none.
Allocation refill(ThreadHeap* heap, ClassId c, Bytes asked);

// After a fork, in the child: the heaps of threads that the child does not have may serve new threads, once they
// are wanted. What those threads held is lost to the child, but for their remote caches: housekeeping finds them.
void forget_other_threads();

// All thread heaps in use, those left behind by a fork too, for the fork handlers and housekeeping.
template <class Visit>
void for_each_thread_heap(Visit visit) {
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        NodeHeap* node = process_heap.opened(NodeId{n});
        if (node == nullptr) continue;
        const std::uint32_t made = node->slots.made();
        for (std::uint32_t i = 0; i < made; ++i) {
            auto* h = static_cast<ThreadHeap*>(node->slots.at(node->pages.region(), i));
            if (h->in_use.load(std::memory_order_acquire)) visit(h);
        }
    }
}

// One object for a thread without a heap.
Allocation allocate_without_heap(NodeId n, ClassId c, Bytes asked);

// Frees what push() did not: `call` names the caller's function in the message that ends the
// program when `p` is not an object in use.
void free_slow(ThreadHeap* heap, void* p, Freed why, const char* call);

// The same of what was located.
void free_located(ThreadHeap* heap, Location at, void* p, Freed why, const char* call);

// What a floor above wants done at each housekeeping, by the thread that does it; it holds no lock.
extern std::atomic<void (*)()> at_housekeeping;

// The remote frees of threads that have gone quiet.
void send_quiet_remote_caches(std::uint32_t age);

}  // namespace numalloc
