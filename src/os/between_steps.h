// Called between two steps of a lock-free operation, where other threads may do anything. Debug builds yield here now
// and then, so that tests with many threads meet rare interleavings. Other builds generate no instruction.
#pragma once

namespace numalloc::os {

#if defined(NUMALLOC_CHECKS)
void between_steps();
#else
inline void between_steps() {}
#endif

}  // namespace numalloc::os
