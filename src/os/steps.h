// Between two steps of what needs no lock other threads may do anything. Debug builds let them, now and then, so
// that tests of many threads meet what is rare. Elsewhere no instruction.
#pragma once

namespace numalloc::os {

#if defined(NUMALLOC_CHECKS)
void between_steps();
#else
inline void between_steps() {}
#endif

}  // namespace numalloc::os
