// Returns free memory before the process reaches the memory limit of its cgroup (a container, a systemd service), so
// that it is not killed for memory that it does not use. Growth that comes near the limit returns free runs first and,
// if that is too little, all that malloc_trim() finds.
//
//   0                              7/8              limit
//   |-------------------------------|-----------------|
//     look again after half of the    give back, look again after
//     way to 7/8                      a quarter of what is left
//
// A large block counts as in use as soon as it is taken, although nobody has touched it yet.
//
// The library finds the cgroup with the lowest limit when it starts. If there is none, nothing is read or counted
// later. A look reads three files of that cgroup. The first is due after growth of 8 MiB, each later one after limit /
// 64 or 1 MiB at least, whichever is more. Nothing is read after a filter (os/filter.h), and nothing is given back if
// memory is never purged (purge_delay=-1).
#pragma once

#include "heap/pages/growth.h"
#include "heap/thread/thread_heap.h"

namespace numalloc {

// Called once, before the first allocation.
void start_limit();

// Called where memory was taken that may not be resident yet, and in housekeeping. `h`: the caller's heap, or no_heap.
// The caller holds no lock.
void look_at_limit(ThreadHeap* h);
inline void keep_within_limit(ThreadHeap* h) {
    if (NUMALLOC_UNLIKELY(growth.is_due())) look_at_limit(h);
}

// For the statistics: the limit as last read, 0 if there is none; and how often memory was given back for it.
Bytes known_memory_limit();
std::uint64_t limit_returns();

}  // namespace numalloc
