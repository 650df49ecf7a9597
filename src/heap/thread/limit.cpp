#include "heap/thread/limit.h"

#include "base/atomic.h"
#include "heap/thread/housekeeping.h"
#include "os/filter.h"
#include "os/fork_gate.h"
#include "os/memory_limit.h"
#include "os/sysfs.h"

namespace numalloc {

namespace policy::limit {

// Beyond 7/8 free memory goes back: the rest is for page tables, the kernel's own memory and other processes.
constexpr Fraction near{7, 8};
// What is in use after a return of free runs, beyond which the rest is searched too.
constexpr Fraction enough{13, 16};
// Growth between two looks, at least.
constexpr Fraction shortest_step{1, 64};
constexpr Bytes least_step = 1 * MiB;
// The first one, and while the limit is lifted.
constexpr Bytes first_step = 8 * MiB;

}  // namespace policy::limit

namespace {

// The fork generation, plus one, in which a thread looks; 0: none does. A thread of the parent that was looking while
// another one forked does not exist in the child, whose generation is a later one.
std::atomic<std::uint64_t> looks{0};
constinit os::MemoryLimit memory_limit;
std::atomic<Bytes> known_limit{os::MemoryLimit::none};
std::atomic<std::uint64_t> returns{0};

Bytes step_of(Bytes limit) { return max_of(policy::limit::shortest_step.part_of(limit), policy::limit::least_step); }

// Returns free runs, and only if that is too little the rest: free pages of bags in use, and what lists hold. The first
// takes less time, in which other threads grow. `untouched`: bytes that will be in use beside what is.
void give_back(ThreadHeap* h, os::MemoryLimit::Usage& usage, Bytes untouched) {
    returns.fetch_add(1, std::memory_order_relaxed);
    process_heap.purge_runs();
    if (memory_limit.read(os::real_reader(), usage) &&
        usage.used + untouched <= policy::limit::enough.part_of(usage.limit))
        return;
    if (h != &no_heap) flush_lists(h);
    ask_others_to_flush();
    send_quiet_remote_caches(0);
    process_heap.purge_all();
    (void)memory_limit.read(os::real_reader(), usage);
}

void look(ThreadHeap* h) {
    const Bytes untouched = growth.beyond();
    if (os::filtered()) return growth.allow_all();
    if (load_relaxed(process_heap.options().purge_delay) < 0) return growth.allow(policy::limit::first_step);
    os::MemoryLimit::Usage usage;
    // Cannot be read for a moment (no descriptor left), or any more (chroot).
    if (!memory_limit.read(os::real_reader(), usage))
        return growth.allow(step_of(known_limit.load(std::memory_order_relaxed)));
    known_limit.store(usage.limit, std::memory_order_relaxed);
    if (usage.limit == os::MemoryLimit::none) return growth.allow(policy::limit::first_step);
    const Bytes near = policy::limit::near.part_of(usage.limit);
    if (usage.used + untouched >= near) give_back(h, usage, untouched);
    const Bytes used = usage.used + untouched;
    const Bytes more = used < near ? (near - used) / 2 : used < usage.limit ? (usage.limit - used) / 4 : 0;
    growth.allow(max_of(step_of(usage.limit), more));
}

}  // namespace

void start_limit() {
    if (os::filtered()) return;
    const Bytes limit = memory_limit.find(os::real_reader());
    known_limit.store(limit, std::memory_order_relaxed);
    if (limit != os::MemoryLimit::none) growth.allow(policy::limit::first_step);
}

void look_at_limit(ThreadHeap* h) {
    const std::uint64_t mine = std::uint64_t{os::fork_gate.generation()} + 1;
    std::uint64_t other = looks.load(std::memory_order_relaxed);
    if (other == mine || !looks.compare_exchange_strong(other, mine, std::memory_order_acquire)) return;
    if (growth.is_due()) look(h);
    looks.store(0, std::memory_order_release);
}

Bytes known_memory_limit() { return known_limit.load(std::memory_order_relaxed); }
std::uint64_t limit_returns() { return returns.load(std::memory_order_relaxed); }

}  // namespace numalloc
