// Filters of system calls (seccomp) that this process has installed. One may kill for every call that it does not know,
// so from then on malloc, free and fork ask nothing optional of the kernel: where pages come from, advice, which node
// or CPU, files of /sys and /proc. What remains is mmap, munmap, mremap, mprotect, madvise(MADV_DONTNEED) and futex,
// and what the program itself calls.
//
// Not known: a filter that the process began with (the start is made under it), and one that another thread installs
// for all threads while the caller is on its way into a call. A child between vfork and exec counts as its parent.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

// Installed, or about to be.
extern constinit std::atomic<std::uint32_t> filters;
inline bool filtered() { return filters.load(std::memory_order_relaxed) != 0; }

}  // namespace numalloc::os
