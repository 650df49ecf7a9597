#include "os/counts.h"

#include <cstring>

namespace numalloc::os {

constinit std::atomic<std::uint64_t> counts[static_cast<unsigned>(Count::count_of_counts)];
NUMALLOC_THREAD_LOCAL unsigned shared_locks_held = 0;

}  // namespace numalloc::os

extern "C" __attribute__((visibility("default"))) unsigned long long numalloc_counted(const char* name) {
    static constexpr const char* names[] = {
#define NUMALLOC_COUNT(name, what) #name,
#include "os/counts.def"
#undef NUMALLOC_COUNT
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
        if (strcmp(names[i], name) == 0) return numalloc::os::counts[i].load(std::memory_order_relaxed);
    return ~0ULL;
}
