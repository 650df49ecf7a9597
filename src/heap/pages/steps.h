// How many entries of the bag table the page heap has looked at: by this a test holds a request in a heap with a past
// against one in a young heap, where time would tell little. Debug builds only.
#pragma once

#include <cstdint>

namespace numalloc {

#if defined(NUMALLOC_CHECKS)
inline std::uint64_t steps_taken = 0;
inline void count_step() { __atomic_fetch_add(&steps_taken, 1, __ATOMIC_RELAXED); }
#else
inline void count_step() {}
#endif

}  // namespace numalloc
