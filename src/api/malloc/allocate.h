// What the entry points have in common: the way from a size to an object. Fast paths are
// inline and end in one call.
#pragma once

#include <cerrno>

#include "heap/thread/fast_paths.h"

namespace numalloc::api {

// More than this no object may have: the difference of two pointers must fit ptrdiff_t.
constexpr Bytes largest_request = static_cast<Bytes>(PTRDIFF_MAX);

// nullptr, with errno ENOMEM.
NUMALLOC_COLD inline void* no_memory() {
    errno = ENOMEM;
    return nullptr;
}

// All that the fast path is not: first call of a thread, empty list, large sizes, a fork under way. 0 bytes are 1.
// errno is left alone. `guarded`: how long it is where it is guarded.
// `alignment`: that of n's size class, for when the object comes from the side heap.
Allocation allocate_slow(Bytes n, Bytes guarded, Bytes alignment);
inline Allocation allocate_slow(Bytes n) { return allocate_slow(n, n, 1); }

// Makes an object of n bytes zero that was just allocated.
void clear(Allocation object, Bytes n);

// `alignment` is a power of two.
void* allocate_aligned(Bytes n, Bytes alignment);

// The same on a node: exactly there, unless it is full and spilling is allowed. `alignment` 1 for none.
Allocation allocate_on_node(Bytes n, Bytes alignment, NodeId node);

// The same in a heap that the program made for itself; n > 0.
Allocation allocate_in(BoundHeap* heap, Bytes n, Bytes alignment);

// As realloc(p, n) for n > 0 and p of ours; `call` is named if p is invalid.
void* reallocate(void* p, Bytes n, const char* call);
// The same, and the result lies on the node; `no_node`: where the pages of `p` are meant to be.
void* reallocate_on_node(void* p, Bytes n, NodeId node, const char* call);

// The same, but the result lies in a bound heap; `p` may be of another or of none.
void* reallocate_in(BoundHeap* into, void* p, Bytes n, const char* call);

// Frees an object that push() did not, for the reason `why`; NULL is ignored. `call` is named if `p` is invalid.
void free_slow(void* p, Pushed why, const char* call);
// free(), for functions that free objects of any origin.
NUMALLOC_INLINE void free_any(void* p, const char* call) {
    const Pushed pushed = push(this_thread_heap, p);
    if (NUMALLOC_UNLIKELY(pushed != Pushed::done)) free_slow(p, pushed, call);
}

// The least that, with its canary, is a multiple of the alignment. `n` and `alignment` are far from the largest.
constexpr Bytes round_up(Bytes n, Bytes alignment) {
    return align_up(max_of<Bytes>(n, 1) + tail_bytes, alignment) - tail_bytes;
}

// Bytes of a guarded object with this alignment: it may begin as many bytes before the end of its page.
constexpr Bytes guarded_bytes(Bytes n, Bytes alignment) {
    return alignment <= granule ? n : round_up(n, alignment) + tail_bytes;
}

// Of at most largest_small bytes.
constexpr Bytes largest_small = small_limit - tail_bytes;
constexpr ClassId class_for(Bytes n) { return class_of(max_of<Bytes>(n, 1) + tail_bytes); }

// nullptr when the slow path must decide. tests/structure/golden counts its instructions.
NUMALLOC_INLINE void* allocate_fast(Bytes n, ThreadHeap* const heap = this_thread_heap) {
    if constexpr (hardened)
        n = max_of<Bytes>(n, 1);  // else 0 bytes are the tiniest class's, which has no place for a tail
    if (NUMALLOC_LIKELY(n <= tiny_limit - tail_bytes))
        return pop(heap, (n + tail_bytes + granule - 1) >> granule_shift);
    if (n <= medium_limit - tail_bytes)
        return pop<1>(heap,
                      heap->medium_class[(n + tail_bytes + (Bytes{1} << medium_step_shift) - 1) >> medium_step_shift]);
    return nullptr;
}

// The same for an alignment that is a power of two.
NUMALLOC_INLINE void* allocate_aligned_fast(Bytes n, Bytes alignment, ThreadHeap* const heap = this_thread_heap) {
    if (NUMALLOC_UNLIKELY(alignment > bag_bytes || n > small_limit)) return nullptr;
    // See size_class.h: such a class is aligned by itself.
    return allocate_fast(round_up(n, alignment), heap);
}

}  // namespace numalloc::api
