// Checks of the hardened library. A program that frees an object states its size, alignment or family. These functions
// compare that with the allocation, and end the program if they differ. They ignore pointers that are not objects in
// use: the free reports those.
#pragma once

#include "api/malloc/allocate.h"
#include "api/malloc/replaced.h"

namespace numalloc::api {

// Ends the program unless `p` was allocated with this size and alignment.
void end_if_not_of_size(const void* p, Bytes n, Bytes alignment, const char* call);
// Ends the program unless `p` was allocated with this size, or realloc to this size left it in place.
void end_if_not_resized_to(const void* p, Bytes n, const char* call);
// Ends the program unless `p` was allocated by the family of functions that `call` belongs to.
void end_if_not_of_origin(const void* p, Origin origin, const char* call);

// Records that operator new returns an object that malloc's family allocated.
void set_origin(void* p, Origin origin);

// `alignment` is 0 for the forms without one. If operators are replaced, new and malloc may be the same, so nothing is
// recorded.
NUMALLOC_INLINE void* made_by_new(void* p, Form form, Bytes alignment = 0) {
    if constexpr (hardened)
        if (p != nullptr && !operators_replaced()) set_origin(p, origin_of(form, alignment));
    return p;
}
// Returns an object of `n` bytes from the fast path, after the hardened library has recorded its origin.
NUMALLOC_INLINE void* made_fast(void* p, Bytes n, Form form, Bytes alignment = 0) {
    if constexpr (hardened) set_tail(p, shape_of(class_for(n, alignment)).size, origin_of(form, alignment));
    return p;
}
// Most objects are the thread's own small ones, whose class is known at once. Any pointer of that class passes here.
NUMALLOC_INLINE void end_if_not_new_of_size(const void* p, Bytes n, Bytes alignment, const char* call) {
    if constexpr (hardened) {
        const bool small = n <= small_limit && alignment <= bag_bytes && round_up(n, alignment) <= largest_small;
        const bool right = small && is_of_class(this_thread_heap, class_for(round_up(n, alignment), alignment).value,
                                                static_cast<const Object*>(p));
        if (NUMALLOC_UNLIKELY(!right)) end_if_not_of_size(p, n, alignment, call);
    }
}

}  // namespace numalloc::api
