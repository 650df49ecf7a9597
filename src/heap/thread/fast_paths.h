// pop() and push() of this build: from hot.h, or from hardened_paths.h in the hardened library.
#pragma once

#include "heap/thread/hardened_paths.h"
#include "heap/thread/hot.h"

namespace numalloc {

template <int Copy = 0>
NUMALLOC_INLINE void* pop(ThreadHeap* heap, std::size_t c) {
    if constexpr (hardened) return hardened_paths::pop(heap, c);
    else return hot::pop<Copy>(heap, c);
}

// `origin`: the object's, as the freeing function implies. Only the hardened library checks it.
NUMALLOC_INLINE Pushed push(ThreadHeap* heap, void* p, [[maybe_unused]] Origin origin = origin_of(Form::malloc, 0)) {
    if constexpr (hardened) return hardened_paths::push(heap, p, origin);
    else return hot::push(heap, p);
}

}  // namespace numalloc
