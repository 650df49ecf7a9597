// Counts the entries of the bag table that the page heap looks at. A test compares the count of a request in a
// long-used heap with that in a young heap, because times vary too much. Debug builds only.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc {

#if defined(NUMALLOC_CHECKS)
inline std::atomic<std::uint64_t> steps_taken{0};
inline void count_step() { steps_taken.fetch_add(1, std::memory_order_relaxed); }
#else
inline void count_step() {}
#endif

}  // namespace numalloc
