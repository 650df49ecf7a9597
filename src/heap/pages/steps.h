// How many entries of the bag table the page heap has looked at: by this a test holds a request in a heap with a past
// against one in a young heap, where time would tell little. Debug builds only.
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
