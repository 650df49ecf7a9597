#include "api/malloc/allocate.h"

#include <cstdlib>
#include <cstring>

#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "api/malloc/make_room.h"
#include "base/atomic.h"
#include "heap/pages/written.h"
#include "heap/program_heaps/any_object.h"
#include "heap/program_heaps/bound_heap.h"
#include "heap/space/side.h"
#include "heap/thread/deferred.h"
#include "heap/thread/free.h"
#include "heap/thread/limit.h"
#include "heap/thread/refill.h"
#include "heap/thread/sampled.h"
#include "options/options.h"
#include "os/libc_call.h"
#include "placement/placement.h"

namespace numalloc::api {

namespace policy::resizing {

// A block that grows in steps gets a quarter more: two classes.
constexpr Bytes room_part = 4;

}  // namespace policy::resizing

namespace {

NodeId node_of(const ThreadHeap* h) { return h == &no_heap ? node_without_heap() : h->home->node; }

void* allocate_block(ThreadHeap* h, Bytes n, Bytes alignment) {
    const NodeId node = node_of(h);
    const NodeId heap = process_heap.heap_for_block(node, n);
    return allocate_big(h, heap != node && placement::memory_is_local() ? heap : node, n, alignment);
}

// For callers that os::Inside refused. Returns false if the caller should wait for the end of the fork, because the
// side heap has no memory. Within a LibcCall it would wait for itself: then the result is true without memory (side.p
// is nullptr), and malloc fails.
bool take_from_side(side::Memory& side, Bytes n, Bytes alignment) {
    side = side::allocate(n, alignment);
    return side.p != nullptr || os::in_libc_call();
}
bool free_without_heap(ThreadHeap* h, void* p, Pushed why, const char* call) {
    return defer_free(h, p, why, call) || os::in_libc_call();
}

// Returns the thread's heap, created if needed: a thread that only frees needs one for its remote frees. Moves it to
// another node only if the thread was moved. The caller is inside the fork gate.
ThreadHeap* any_heap() { return this_thread_heap != &no_heap ? attached_heap : thread_heap_slow(); }
// The same for an object that push() did not free. If a signal handler has moved the thread since push() found a list
// full, the heap stays: free_object() sets that list's count right.
ThreadHeap* heap_for_free(Pushed why) {
    return why == Pushed::full && attached_heap != &no_heap ? attached_heap : any_heap();
}
// The node of the thread's heap, which is moved first if the thread was.
NodeId settled_node() {
    if (NUMALLOC_UNLIKELY(this_thread_heap != attached_heap))
        if (const os::Inside inside; inside) return node_of(any_heap());
    return node_of(attached_heap);
}

// The caller is inside the fork gate.
NUMALLOC_INLINE Allocation allocate_with(ThreadHeap* h, Bytes n, Bytes guarded, Bytes alignment) {
    if (any_deferred()) run_deferred(h);
    if (n > largest_small) return n <= largest_request ? Allocation{allocate_block(h, n, 1)} : Allocation{};
    const ClassId c = class_for(n, alignment);
    if (h == &no_heap) return allocate_without_heap(node_of(h), c, guarded);
    // A thread's first call, and sizes above the fast path's, may find an object in the list.
    if (void* p = pop(h, c.value)) return {p};
    return refill(h, c, guarded);
}

// The thread has no heap yet or may have to move it (on several nodes every slow path asks), a fork is in progress, or
// a signal handler interrupted the heap.
__attribute__((noinline)) Allocation allocate_general(Bytes n, Bytes guarded, Bytes alignment) {
    if (!awake()) return {};
    const os::Inside inside;
    side::Memory side;
    if (!inside && take_from_side(side, n, alignment)) return {side.p, side.zeroed};
    return allocate_with(thread_heap_slow(n), n, guarded, alignment);
}

}  // namespace

Allocation allocate_slow(Bytes n, Bytes guarded, Bytes alignment) {
    ThreadHeap* const h = this_thread_heap;
    // Within a LibcCall h is no_heap.
    if (NUMALLOC_UNLIKELY(h == &no_heap || placement::has_several_nodes || !os::fork_gate.try_enter_with(h->lock_mark)))
        return allocate_general(n, guarded, alignment);
    const Allocation object = allocate_with(h, n, guarded, alignment);
    os::fork_gate.leave_with(h->lock_mark);
    return object;
}

namespace {

__attribute__((noinline)) void clear_big(Allocation object, Bytes n) {
    const Location at = locate(object.p);
    if (at.found == Found::side) {
        if (!object.zeroed) memset(object.p, 0, n);
        return;
    }
    at.owner->pages.clear(at.bag, n);
    renew_tail(at);
}

__attribute__((noinline)) void copy_big(void* q, const void* p, Bytes n) {
    const Location at = locate(q);
    if (at.found == Found::big) at.owner->pages.copy_to(at.bag, p, n);
    else memcpy(q, p, n);
}

// For a realloc to a new block.
void copy(void* q, const void* p, Bytes n) {
    if (n > small_limit) copy_big(q, p, n);
    else memcpy(q, p, n);
}

}  // namespace

void clear(Allocation object, Bytes n) {
    if (n > largest_small) {
        clear_big(object, n);
    } else if (object.zeroed && n > sizeof(Object)) {
        // Only the link was written since; hand_out() has cleared the mark.
        static_cast<Object*>(object.p)->next = nullptr;
    } else if (n > table_limit && !object.reused) {
        clear_written(static_cast<char*>(object.p), n);
    } else {
        // A large object that is used again and again becomes resident, which makes this faster than to look for zeros.
        // Clears at least a whole Object, which is faster, unless a canary may lie in it.
        memset(object.p, 0, hardened ? n : max_of<Bytes>(n, sizeof(Object)));
    }
}

namespace {

// What a sampled small object is made for: the profile counts what was asked for, a guarded one needs room to be
// aligned. Only one of them is on.
Bytes sampled_bytes(Bytes n, Bytes alignment) { return profile::on() ? n : guarded_bytes(n, alignment); }

}  // namespace

namespace {

NUMALLOC_INLINE void* try_aligned(Bytes n, Bytes alignment) {
    // The class for the rounded size and the alignment has this alignment: see size_class.h.
    if (alignment <= bag_bytes && round_up(n, alignment) <= largest_small) {
        const Bytes rounded = round_up(n, alignment);
        void* p = allocate_rounded(rounded, alignment);
        return p != nullptr ? p : allocate_slow(rounded, sampled_bytes(n, alignment), alignment).p;
    }
    if (!awake()) return nullptr;
    const os::Inside inside;
    side::Memory side;
    if (!inside && take_from_side(side, n, alignment)) return side.p;
    ThreadHeap* const h = thread_heap_slow(n);
    return allocate_block(h, n, alignment);
}

NUMALLOC_COLD void* aligned_failed(Bytes n, Bytes alignment) {
    return after_making_room(n, [n, alignment] { return try_aligned(n, alignment); });
}

}  // namespace

void* allocate_aligned(Bytes n, Bytes alignment) {
    if (n > largest_request || alignment > largest_request) return nullptr;
    n = max_of<Bytes>(n, 1);
    void* const p = try_aligned(n, alignment);
    return NUMALLOC_LIKELY(p != nullptr) ? p : aligned_failed(n, alignment);
}

Allocation allocate_on_node(Bytes n, Bytes alignment, NodeId node) {
    if (n > largest_request || alignment > largest_request || !awake()) return {};
    const os::Inside inside;
    side::Memory side;
    if (!inside && take_from_side(side, n, alignment)) return {side.p, side.zeroed};
    ThreadHeap* const h = any_heap();
    // The class for the rounded size and the alignment has this alignment: see size_class.h.
    n = max_of<Bytes>(n, 1);
    const Bytes rounded = alignment <= bag_bytes ? round_up(n, alignment) : ~Bytes{0};
    if (rounded <= largest_small)
        return allocate_on(h, node, class_for(rounded, alignment), sampled_bytes(n, alignment));
    return {allocate_big(h, node, n, alignment)};
}

Allocation allocate_in(BoundHeap* heap, Bytes n, Bytes alignment) {
    const Allocation object = heap->allocate(n, alignment);
    if (profile::on() && object.p != nullptr) profile::allocated(attached_heap->profile, object.p, n, heap);
    return object;
}

namespace {

// Frees a located object that push() did not free.
void free_found(Location at, void* p, Pushed why, const char* call) {
    const os::Inside inside;
    if (!inside && free_without_heap(this_thread_heap, p, why, call)) return;
    ThreadHeap* const h = heap_for_free(why);
    free_located(h, at, p, why, call);
    if (any_deferred()) run_deferred(h);
}

// A block that the kernel may move stays one unless the program names a node, and no other becomes one.
void* allocate_at(const Resize& resize) {
    const Resize::Target& target = resize.target;
    const Bytes n = resize.bytes;
    if (target.heap != nullptr) return allocate_in(target.heap, n, 1).p;
    const bool may_stray = resize.may_stay && process_heap.may_stray(resize.at);
    const NodeId of_block = process_heap.heap_for_block(target.node, n);
    if (!target.by_lists || of_block != target.node)
        return allocate_on_node(n, 1, may_stray ? of_block : target.node).p;
    if (void* const p = allocate_fast(n); p != nullptr) return p;
    if (!placement::has_several_nodes || !load_relaxed(options().realloc_keeps_node)) return allocate_slow(n).p;
    // This may move the thread's heap, but not the block.
    if (const os::Inside inside; inside) thread_heap_slow(n);
    return allocate_on_node(n, 1, target.node).p;
}

// The same with room for an object above 32 KiB that grows in small steps: every class that it outgrows is a copy, and
// there are eight a doubling.
Resize with_room(Resize resize, Bytes old_bytes) {
    const Bytes n = resize.bytes;
    if (n <= old_bytes || n <= table_limit || n > medium_limit || resize.target.heap != nullptr || profile::on())
        return resize;
    const Bytes room = min_of(old_bytes + old_bytes / policy::resizing::room_part, medium_limit - tail_bytes);
    resize.bytes = max_of(n, room);
    return resize;
}

// Resizes an object that fits() rejects, or allocates a new block, copies and frees. Inline, because each caller knows
// the kind of target.
NUMALLOC_INLINE void* resize_or_copy(void* p, const Resize& resize, const char* call) {
    const Location at = resize.at;
    const Bytes n = resize.bytes;
    if (n > largest_request) return nullptr;
    if (at.found != Found::small) {
        const os::Inside inside;
        void* const q = !inside         ? nullptr
                        : profile::on() ? profile::resize(attached_heap->profile, resize)
                                        : resize_object(resize);
        if (q != nullptr) {
            keep_within_limit(attached_heap);
            return q;
        }
    }
    const Bytes old_bytes = size_of(at);
    const Resize roomy = with_room(resize, old_bytes);
    void* q = allocate_at(roomy);
    if (q == nullptr && roomy.bytes != n) q = allocate_at(resize);
    if (q == nullptr) return resize.may_stay && n <= old_bytes ? p : nullptr;  // shrinking never fails
    if (resize.may_stay && NUMALLOC_UNLIKELY(process_heap.any_moved()))
        if (const os::Inside inside; inside) spread_as(at, locate(q));
    copy(q, p, min_of(old_bytes, n));
    const Pushed pushed = push(this_thread_heap, p);
    if (pushed != Pushed::done && !(this_thread_heap->profile != nullptr && push_counted(this_thread_heap, p)))
        free_found(at, p, pushed, call);
    return q;
}

// `p` is an object in use, so the library is awake.
NUMALLOC_INLINE void* reallocate_with(void* p, const Resize& resize, const char* call) {
    if (!resize.may_stay || !fits(resize.at, resize.bytes)) return resize_or_copy(p, resize, call);
    if (profile::on() && resize.at.found != Found::small)
        if (const os::Inside inside; inside) profile::resized(p, resize.bytes);
    return p;
}

// `at` may be in another bound heap, or in none.
void* reallocate_bound(BoundHeap* into, Location at, void* p, Bytes n, const char* call) {
    const bool may_stay = at.found == Found::bound && BoundHeap::of(at) == into;
    return reallocate_with(p, {at, n, {.heap = into}, may_stay}, call);
}

// Whether the object is in a heap that the program created.
bool is_in_bound_heap(Location at) {
    return at.found == Found::bound && !(profile::on() && profile::owns(BoundHeap::of(at)));
}

}  // namespace

void* reallocate(void* p, Bytes n, const char* call) {
    if (const auto next = NUMALLOC_ASIDE(realloc)) return next(p, n);
    Location at = locate(p);
    if (NUMALLOC_UNLIKELY(at.found == Found::foreign && awake()))
        if (const auto next = NUMALLOC_BEHIND(realloc)) return next(p, n);
    at = located_object(at, p, call);
    if (is_in_bound_heap(at)) return reallocate_bound(BoundHeap::of(at), at, p, n, call);
    // A block that must move stays on its node, because the program placed it there, unless that is the thread's own.
    const NodeId own = settled_node();
    const NodeId to = load_relaxed(options().realloc_keeps_node) ? process_heap.node_of(at) : own;
    if (to != own && to != no_node && !ProcessHeap::is_inherited(at))
        return reallocate_with(p, {at, n, {.node = to}, true}, call);
    return reallocate_with(p, {at, n, {.node = own, .by_lists = true}, true}, call);
}

void* reallocate_on_node(void* p, Bytes n, NodeId node, const char* call) {
    if (const auto next = NUMALLOC_ASIDE(realloc)) return next(p, n);
    const Location at = locate_object(p, call);
    const NodeId now = process_heap.node_of(at);
    const NodeId wanted = node == no_node ? now : node;
    const NodeId to = wanted == no_node ? settled_node() : wanted;
    if (is_in_bound_heap(at) && now == to) return reallocate_bound(BoundHeap::of(at), at, p, n, call);
    const bool is_there = now == to && (node == no_node || !(process_heap.may_stray(at) || process_heap.is_spread(at)));
    return reallocate_with(p, {at, n, {.node = to}, is_there}, call);
}

void* reallocate_in(BoundHeap* into, void* p, Bytes n, const char* call) {
    return reallocate_bound(into, locate_object(p, call), p, n, call);
}

namespace {

bool freed_behind(void* p, Pushed why) {
    const auto next = NUMALLOC_BEHIND(free);
    if (next == nullptr || locate(p).found != Found::foreign) return false;
    if (why == Pushed::full && attached_heap != &no_heap) attached_heap->room[0] = 0;  // push() has decremented it
    next(p);
    return true;
}

// The same cases as allocate_general().
__attribute__((noinline)) void free_general(void* p, Pushed why, const char* call) {
    if (!awake()) {
        if (const auto next = NUMALLOC_ASIDE(free)) return next(p);
        return free_object(&no_heap, p, why, call);
    }
    // This may be the first call of the process.
    if (malloc_is_behind() && freed_behind(p, why)) return;
    const os::Inside inside;
    if (!inside && free_without_heap(this_thread_heap, p, why, call)) return;
    ThreadHeap* const h = heap_for_free(why);
    free_object(h, p, why, call);
    if (any_deferred()) run_deferred(h);
}

}  // namespace

void free_slow(void* p, Pushed why, const char* call) {
    if (p == nullptr) return;
    ThreadHeap* const h = this_thread_heap;
    if (malloc_is_behind() && freed_behind(p, why)) return;
    if (NUMALLOC_UNLIKELY(h->profile != nullptr) && push_counted(h, p)) return;
    if (NUMALLOC_UNLIKELY(h == &no_heap || !os::fork_gate.try_enter_with(h->lock_mark)))
        return free_general(p, why, call);
    free_object(h, p, why, call);
    os::fork_gate.leave_with(h->lock_mark);
}

}  // namespace numalloc::api
