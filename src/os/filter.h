// System call filters (seccomp) that this process has installed. A filter may kill the process at any call that it does
// not know, so from then on malloc, free and fork make no optional system call: page placement, advice, queries of
// nodes and CPUs, files of /sys and /proc. They still use mmap, munmap, mremap, mprotect, madvise(MADV_DONTNEED) and
// futex, and pass on the program's own calls.
//
// Not detected: a filter that the process started with (the library initialises under it), and a filter that another
// thread installs for all threads while the caller is about to make a system call. A child between vfork and exec
// counts as its parent.
#pragma once

#include <atomic>
#include <cstdint>

namespace numalloc::os {

// Number of filters that are installed or about to be.
extern constinit std::atomic<std::uint32_t> filters;
inline bool filtered() { return filters.load(std::memory_order_relaxed) != 0; }

}  // namespace numalloc::os
