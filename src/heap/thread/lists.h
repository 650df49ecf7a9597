// Operations on the two lists of a class in a thread's heap; thread_heap.h has a picture. For the heap's thread only.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

inline void set_current(ThreadHeap* h, unsigned c, Object* list, std::uint32_t count, std::uint32_t limit) {
    h->head[c] = list;
    h->lists[c].limit = static_cast<std::uint16_t>(limit);
    h->room[c] = static_cast<std::int32_t>(limit - count);
}

inline void set_empty(ThreadHeap* h, unsigned c) { set_current(h, c, &end_of_list, 0, 0); }

// Makes the sealed list, which must exist, current.
inline void make_sealed_current(ThreadHeap* h, unsigned c) {
    ThreadHeap::Lists& s = h->lists[c];
    set_current(h, c, s.sealed, s.sealed_count, s.sealed_count + std::uint32_t{s.capacity});
    s.sealed = nullptr;
}

inline std::uint32_t length(const ThreadHeap* h, unsigned c) {
    return static_cast<std::uint32_t>(h->lists[c].limit - h->room[c]);
}

// For a thread that the heap profile watches: the number of mallocs of the class before the next recorded one. Code
// that changes the lists preserves it.
inline std::int32_t before_record(const ThreadHeap* h, unsigned c) {
    return h->profile->left[c] + static_cast<std::int32_t>(length(h, c));
}
inline void set_before_record(ThreadHeap* h, unsigned c, std::int32_t mallocs) {
    h->profile->left[c] = mallocs - static_cast<std::int32_t>(length(h, c));
}

}  // namespace numalloc
