// Which CPUs a thread may use, and on which one it runs.
#pragma once

#include <cstddef>

#include "base/bit_set.h"
#include "base/ids.h"

namespace numalloc::os {

constexpr unsigned max_cpus = 8192;
using CpuMask = BitSet<max_cpus>;

// The affinity of thread `tid` (0: the caller) as the kernel has it; like all that is not a call of the program's own,
// refused after a filter (filter.h). The size in bytes of the kernel's own mask, or -errno. Thread-safe; errno is kept.
long get_affinity(int tid, CpuMask& mask);

// 0, or -errno: EINVAL where the cpuset allows none of the CPUs. Thread-safe; errno is kept.
long set_affinity(int tid, const CpuMask& mask);

// The system calls as the program makes them, with masks of any length: bytes or 0, or -errno.
long get_affinity(int tid, std::size_t bytes, void* mask);
long set_affinity(int tid, std::size_t bytes, const void* mask);

// The kernel's number of the calling thread; 0 after a filter (filter.h).
int thread_id();
// The process's; after a filter what it was the last time, unless it has forked since.
int process_id();

// The CPU under the caller, by rseq or the vDSO: no system call where glibc has either. -1
// where nobody tells.
int current_cpu();

// The kernel's number of the node under the caller, or -1: always a system call.
int ask_os_node();

}  // namespace numalloc::os
