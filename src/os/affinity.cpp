#include "os/affinity.h"

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/atomic.h"
#include "os/fork_gate.h"
#include "os/optional_call.h"
#include "os/refusals.h"
#include "os/vdso.h"

// glibc 2.35 and later registers rseq for each thread. These symbols say where its area lies.
extern "C" {
extern const std::ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
}

namespace numalloc::os {

namespace {

char* thread_pointer() {
#if defined(__x86_64__)
    char* p;
    __asm__("mov %%fs:0, %0" : "=r"(p));
    return p;
#else
    char* p;
    __asm__("mrs %0, tpidr_el0" : "=r"(p));
    return p;
#endif
}

}  // namespace

long get_affinity(int tid, std::uint64_t* mask, unsigned words) {
    for (unsigned w = 0; w < words; ++w) mask[w] = 0;
    return optional_call(SYS_sched_getaffinity, tid, words * sizeof(std::uint64_t), mask);
}

long set_affinity(int tid, const std::uint64_t* mask, unsigned words) {
    const long result = optional_call(SYS_sched_setaffinity, tid, words * sizeof(std::uint64_t), mask);
    // ESRCH: the thread has ended, which is not a refusal.
    if (failed(result) && result != -ESRCH) refused_affinity.note(static_cast<int>(-result));
    return result;
}

long get_affinity(int tid, std::size_t bytes, void* mask) { return call(SYS_sched_getaffinity, tid, bytes, mask); }
long set_affinity(int tid, std::size_t bytes, const void* mask) {
    return call(SYS_sched_setaffinity, tid, bytes, mask);
}

int thread_id() { return filtered() ? 0 : static_cast<int>(call(SYS_gettid)); }
int process_id() {
    // The fork generation in the upper 32 bits, the process ID in the lower 32.
    static constinit std::atomic<std::uint64_t> known{~std::uint64_t{0}};
    const std::uint64_t generation = fork_gate.generation();
    const std::uint64_t last = known.load(std::memory_order_relaxed);
    if (filtered() && last >> 32 == generation) return static_cast<int>(last & 0xFFFFFFFF);
    const int now = static_cast<int>(call(SYS_getpid));
    known.store(generation << 32 | static_cast<std::uint32_t>(now), std::memory_order_relaxed);
    return now;
}

bool has_thread(int tid) { return optional_call(SYS_tgkill, process_id(), tid, 0) != -ESRCH; }

// A thread's CPU clock is named by its ID: bits 3 and up of the complement.
int thread_id_of(pthread_t thread) {
    clockid_t clock = 0;
    return pthread_getcpuclockid(thread, &clock) == 0 ? ~(clock >> 3) : 0;
}

int cpu_at_once() {
    // struct rseq: cpu_id is the second word, negative while the thread is not registered. Its node_id is not used:
    // kernels before 6.3 leave it wrong, and __rseq_size does not show that.
    if (&__rseq_size != nullptr && __rseq_size >= 8) {
        const auto* rseq = reinterpret_cast<const int*>(thread_pointer() + __rseq_offset);
        const int cpu = load_relaxed(rseq[1]);  // written by the kernel
        if (cpu >= 0) return cpu;
    }
    return -1;
}

namespace {

using GetCpu = int (*)(unsigned* cpu, unsigned* node, void* unused);

int unknown_cpu(unsigned*, unsigned*, void*) { return -1; }
int look_for_getcpu(unsigned* cpu, unsigned* node, void* unused);

// Threads that race here find the same function.
constinit std::atomic<GetCpu> getcpu_function{look_for_getcpu};

// Only x86-64 has it.
int look_for_getcpu(unsigned* cpu, unsigned* node, void* unused) {
    const auto found = reinterpret_cast<GetCpu>(vdso_function("__vdso_getcpu"));
    getcpu_function.store(found != nullptr ? found : unknown_cpu, std::memory_order_relaxed);
    return getcpu_function.load(std::memory_order_relaxed)(cpu, node, unused);
}

}  // namespace

int cpu_without_call() {
    if (const int cpu = cpu_at_once(); cpu >= 0) return cpu;
    unsigned cpu = 0;
    return getcpu_function.load(std::memory_order_relaxed)(&cpu, nullptr, nullptr) == 0 ? static_cast<int>(cpu) : -1;
}

int current_cpu() {
    if (const int cpu = cpu_without_call(); cpu >= 0) return cpu;
    unsigned cpu = 0;
    return failed(optional_call(SYS_getcpu, &cpu, 0, 0)) ? -1 : static_cast<int>(cpu);
}

int ask_os_node() {
    unsigned cpu = 0;
    unsigned node = 0;
    return failed(optional_call(SYS_getcpu, &cpu, &node, 0)) ? -1 : static_cast<int>(node);
}

}  // namespace numalloc::os
