// The slow paths of a thread whose allocations are sampled: the heap profile records them at random distances in bytes
// (heap/profile), or guarded sampling guards them at random distances in objects (heap/guarded). The lists are cut so
// that they are empty right before a malloc to be sampled. Callers but push_counted()'s are inside the fork gate.
#pragma once

#include "heap/thread/hot.h"

namespace numalloc {

// refill() for a thread that the heap profile watches, and for one with guarded objects.
Allocation refill_counted(ThreadHeap* h, ClassId c, Bytes asked);
Allocation refill_guarded(ThreadHeap* h, ClassId c, Bytes asked);

// Frees into a list of a thread that the heap profile watches.
void free_counted(ThreadHeap* h, Location at, Object* p);

// hot::push() for a thread that the heap profile watches: the list may not hold more objects than there are mallocs
// before the next recorded one. Returns false if free_object() must free the object.
NUMALLOC_INLINE bool push_counted(ThreadHeap* heap, void* p) {
    profile::ThreadProfile& counts = *heap->profile;
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= counts.bound)) return false;
    const std::size_t c = load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j));
    if (NUMALLOC_UNLIKELY(hot::decrement_below_zero(counts.left[c]))) return ++counts.left[c], false;
    if (NUMALLOC_UNLIKELY(hot::decrement_below_zero(heap->room[c]))) return ++heap->room[c], ++counts.left[c], false;
    auto* const object = static_cast<Object*>(p);
    if (NUMALLOC_UNLIKELY(was_freed(object))) return ++heap->room[c], ++counts.left[c], false;
    put_mark(object, heap->freed_key);
    hot::link(heap, c, object);
    return true;
}

}  // namespace numalloc
