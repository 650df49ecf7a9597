// Counts how threads interfere with each other, in a build of its own: libnumalloc-counted.so, which the contention
// tests run. In every other build the functions here generate no instructions.
//
// The program reads a counter by a function that only that library has. It returns all ones for an unknown name:
//     unsigned long long numalloc_counted(const char* name);      a name of counts.def
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bits.h"

namespace numalloc::os {

enum class Count : unsigned {
#define NUMALLOC_COUNT(name, what) name,
#include "os/counts.def"
#undef NUMALLOC_COUNT
    count_of_counts
};

#if defined(NUMALLOC_COUNTING)

extern std::atomic<std::uint64_t> counts[static_cast<unsigned>(Count::count_of_counts)];
// Number of locks that the calling thread holds, without those of rank remote_cache.
extern NUMALLOC_THREAD_LOCAL unsigned shared_locks_held;

inline void count(Count what, std::uint64_t n = 1) {
    counts[static_cast<unsigned>(what)].fetch_add(n, std::memory_order_relaxed);
}
inline bool holds_shared_lock() { return shared_locks_held != 0; }
inline void count_walked(std::uint64_t objects) {
    if (holds_shared_lock()) count(Count::walked, objects);
}
inline void count_lock(unsigned rank) {
    count(static_cast<Count>(rank));
    shared_locks_held += static_cast<Count>(rank) != Count::locks_remote_cache;
}
inline void count_unlock(unsigned rank) { shared_locks_held -= static_cast<Count>(rank) != Count::locks_remote_cache; }

#else

inline void count(Count, std::uint64_t = 1) {}
inline constexpr bool holds_shared_lock() { return false; }
inline void count_walked(std::uint64_t) {}
inline void count_lock(unsigned) {}
inline void count_unlock(unsigned) {}

#endif

}  // namespace numalloc::os
