// Allocating and freeing for all entry points. Fast paths are inline and end in one call.
#pragma once

#include <cerrno>

#include "heap/thread/fast_paths.h"

namespace numalloc::api {

// No object may be larger: the difference of two pointers must fit ptrdiff_t.
constexpr Bytes largest_request = static_cast<Bytes>(PTRDIFF_MAX);

// Sets errno to ENOMEM and returns nullptr.
NUMALLOC_COLD inline void* no_memory() {
    errno = ENOMEM;
    return nullptr;
}

// Serves requests that the fast path rejects: a thread's first call, an empty list, a large size, a fork in progress. 0
// bytes count as 1. Keeps errno. `guarded`: the bytes of the object if it becomes a guarded one. `alignment`: the one
// that n was rounded up for, which decides the class, and which an object from the side heap must have.
Allocation allocate_slow(Bytes n, Bytes guarded, Bytes alignment);
inline Allocation allocate_slow(Bytes n) { return allocate_slow(n, n, 1); }

// Zeroes the n bytes of an object that was just allocated.
void clear(Allocation object, Bytes n);

// `alignment` is a power of two. Returns nullptr without memory; keeps errno.
void* allocate_aligned(Bytes n, Bytes alignment);

// The same on a node, or on another if it is full and spilling is allowed. `alignment` is 1 for none.
Allocation allocate_on_node(Bytes n, Bytes alignment, NodeId node);

// The same in a heap that the program created; n > 0.
Allocation allocate_in(BoundHeap* heap, Bytes n, Bytes alignment);

// Like realloc(p, n) for n > 0 and p of numalloc. The message for an invalid `p` names `call`.
void* reallocate(void* p, Bytes n, const char* call);
// The same, with the result on the node; `no_node`: the node where the pages of `p` are meant to be.
void* reallocate_on_node(void* p, Bytes n, NodeId node, const char* call);

// The same, with the result in a bound heap; `p` may be in another heap or in none.
void* reallocate_in(BoundHeap* into, void* p, Bytes n, const char* call);

// Frees an object that push() did not; NULL is ignored. `why`: the result of push(). The message for an invalid `p`
// names `call`.
void free_slow(void* p, Pushed why, const char* call);
// Frees an object, of malloc or of operator new.
NUMALLOC_INLINE void free_any(void* p, const char* call) {
    const Pushed pushed = push(this_thread_heap, p);
    if (NUMALLOC_UNLIKELY(pushed != Pushed::done)) free_slow(p, pushed, call);
}

// Rounds n up so that together with its tail it is a multiple of the alignment. Both must be far below the largest
// value.
constexpr Bytes round_up(Bytes n, Bytes alignment) {
    return align_up(max_of<Bytes>(n, 1) + tail_bytes, alignment) - tail_bytes;
}

// Bytes of a guarded object with this alignment: it may begin that many bytes before the end of its page.
constexpr Bytes guarded_bytes(Bytes n, Bytes alignment) {
    return alignment <= granule ? n : round_up(n, alignment) + tail_bytes;
}

// The most bytes of a small object, and the class of a size up to that.
constexpr Bytes largest_small = small_limit - tail_bytes;
constexpr ClassId class_for(Bytes n) { return class_of(max_of<Bytes>(n, 1) + tail_bytes); }
// The class of a size that round_up() returned for the alignment, up to largest_small.
constexpr ClassId class_for(Bytes n, Bytes alignment) { return class_of(max_of<Bytes>(n, 1) + tail_bytes, alignment); }

// Returns nullptr if the slow path must decide. tests/structure/golden counts its instructions.
NUMALLOC_INLINE void* allocate_fast(Bytes n, ThreadHeap* const heap = this_thread_heap) {
    if constexpr (hardened) n = max_of<Bytes>(n, 1);  // the class for 0 bytes has no room for a tail
    if (NUMALLOC_LIKELY(n <= fine_limit - tail_bytes)) return pop(heap, fine_classes.of[n + tail_bytes]);
    if (n <= table_limit - tail_bytes) return pop<1>(heap, heap->coarse_class[coarse_entry(n + tail_bytes)]);
    return nullptr;
}

// The same for a size that round_up() returned for the alignment.
NUMALLOC_INLINE void* allocate_rounded(Bytes n, Bytes alignment, ThreadHeap* const heap = this_thread_heap) {
    if (has_aligned_class(n + tail_bytes, alignment)) return pop<2>(heap, class_for(n, alignment).value);
    return allocate_fast(n, heap);
}

// The same for an alignment. Returns nullptr for one that is not a power of two.
NUMALLOC_INLINE void* allocate_aligned_fast(Bytes n, Bytes alignment, ThreadHeap* const heap = this_thread_heap) {
    // 0 wraps around.
    if (NUMALLOC_UNLIKELY(alignment - 1 >= bag_bytes || (alignment & (alignment - 1)) != 0 || n > small_limit))
        return nullptr;
    return allocate_rounded(round_up(n, alignment), alignment, heap);
}

}  // namespace numalloc::api
