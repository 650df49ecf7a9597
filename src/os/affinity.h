// The CPUs that a thread may use, and the CPU that it runs on.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "base/bit_set.h"
#include "base/ids.h"

namespace numalloc::os {

constexpr unsigned max_cpus = 8192;
using CpuMask = BitSet<max_cpus>;

// The kernel's affinity of thread `tid` (0: the caller), in `words` words. Returns the size in bytes of the kernel's
// own mask, or -errno: -EINVAL if that is larger; -EPERM, without a system call, after a filter (filter.h).
// Thread-safe; keeps errno.
long get_affinity(int tid, std::uint64_t* mask, unsigned words);
inline long get_affinity(int tid, CpuMask& mask) { return get_affinity(tid, mask.data(), CpuMask::words); }

// Returns 0 or -errno: -EINVAL if the cpuset allows none of the CPUs, -EPERM after a filter. Thread-safe; keeps errno.
long set_affinity(int tid, const std::uint64_t* mask, unsigned words);
inline long set_affinity(int tid, const CpuMask& mask) { return set_affinity(tid, mask.data(), CpuMask::words); }

// The system calls as the program makes them, with masks of any length. Return bytes or 0, or -errno.
long get_affinity(int tid, std::size_t bytes, void* mask);
long set_affinity(int tid, std::size_t bytes, const void* mask);

// The kernel's ID of the calling thread; 0 after a filter (filter.h).
int thread_id();
// The process ID. After a filter it is cached: the system call is made once per fork generation.
int process_id();
// Whether the process has that thread. true also after a filter, and for 0.
bool has_thread(int tid);
// The ID of a thread that is not joined yet; 0 if it has ended. No system call.
int thread_id_of(pthread_t thread);

// The CPU that the caller runs on. -1 if unknown. A system call if neither rseq nor the vDSO says it.
int current_cpu();
// The same without a system call.
int cpu_without_call();
// The same from rseq alone, so that no function of libc is called, which a library may replace. -1 before glibc 2.35.
int cpu_at_once();

// The kernel's number of the node that the caller runs on. -1 if unknown or after a filter. A system call each time.
int ask_os_node();

}  // namespace numalloc::os
