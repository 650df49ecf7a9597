// Threads share a word as a std::atomic, with the memory order at each access. The functions here are for words that
// cannot be std::atomic: in entries that are written as a whole (Bag), in maps of bytes and bits, in structures of
// others. tests/structure/idioms.py rejects any other way.
#pragma once

#include <type_traits>

#include "base/bits.h"

namespace numalloc {

template <class T>
NUMALLOC_INLINE T load_relaxed(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
template <class T>
NUMALLOC_INLINE T load_acquire(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

template <class T>
NUMALLOC_INLINE void store_relaxed(T& word, std::type_identity_t<T> value) {
    __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}
template <class T>
NUMALLOC_INLINE void store_release(T& word, std::type_identity_t<T> value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

// Stores `next` if the word equals `expected`; otherwise sets `expected` to the word and returns false.
template <class T>
NUMALLOC_INLINE bool compare_exchange(T& word, T& expected, std::type_identity_t<T> next) {
    return __atomic_compare_exchange_n(&word, &expected, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace numalloc
