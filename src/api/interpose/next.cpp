#include "api/interpose/next.h"

#include <dlfcn.h>

#include <atomic>

namespace numalloc::api {

namespace {

constexpr int count = static_cast<int>(Next::count);
#define NUMALLOC_NAME(name) #name,
constexpr const char* names[count] = {NUMALLOC_NEXT_FUNCTIONS(NUMALLOC_NAME)};
#undef NUMALLOC_NAME
constinit std::atomic<void*> found[count] = {};
constinit std::atomic<bool> looked_up{false};

}  // namespace

void* next_function(Next which) {
    if (!looked_up.load(std::memory_order_acquire)) {
        for (int i = 0; i < count; ++i) found[i].store(dlsym(RTLD_NEXT, names[i]), std::memory_order_relaxed);
        looked_up.store(true, std::memory_order_release);
    }
    return found[static_cast<int>(which)].load(std::memory_order_relaxed);
}

}  // namespace numalloc::api
