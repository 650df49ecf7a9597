// What a program says of an object as it frees it, which the hardened library compares with what it was told when it
// allocated the object. Each ends the program where the two differ, and leaves alone what is no object in use: the free
// says what is wrong.
#pragma once

#include "api/malloc/allocate.h"
#include "api/malloc/replaced.h"

namespace numalloc::api {

// It was allocated with the size and alignment.
void end_if_not_of_size(const void* p, Bytes n, Bytes alignment, const char* call);
// It was allocated with the size, or realloc left it where it was when it got that size.
void end_if_not_resized_to(const void* p, Bytes n, const char* call);
// It was allocated by the family of functions that `call` belongs to.
void end_if_not_of_origin(const void* p, Origin origin, const char* call);

// What malloc's family gave comes from new.
void set_origin(void* p, Origin origin);

// `alignment` is 0 for the forms without one. Where operators are replaced, new and malloc may be one.
NUMALLOC_INLINE void* made_by_new(void* p, Form form, Bytes alignment = 0) {
    if constexpr (hardened)
        if (p != nullptr && !operators_replaced()) set_origin(p, origin_of(form, alignment));
    return p;
}
// Returns an object of `n` bytes from the fast path, after the hardened library has recorded its origin.
NUMALLOC_INLINE void* made_fast(void* p, Bytes n, Form form, Bytes alignment = 0) {
    if constexpr (hardened) set_tail(p, shape_of(class_for(n)).size, origin_of(form, alignment));
    return p;
}
// Of most objects, the thread's own small ones, the class is known at once. Any pointer of that class passes here.
NUMALLOC_INLINE void end_if_not_new_of_size(const void* p, Bytes n, Bytes alignment, const char* call) {
    if constexpr (hardened) {
        const bool small = n <= small_limit && alignment <= bag_bytes && round_up(n, alignment) <= largest_small;
        const bool right = small && is_of_class(this_thread_heap, class_for(round_up(n, alignment)).value,
                                                static_cast<const Object*>(p));
        if (NUMALLOC_UNLIKELY(!right)) end_if_not_of_size(p, n, alignment, call);
    }
}

}  // namespace numalloc::api
