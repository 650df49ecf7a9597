// The function behind one that we interpose: libc's, or the next preloaded library's. Looked up
// when first needed, because there is no constructor to do it earlier.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace numalloc::api {

// nullptr where this libc has no such function.
inline void* next_function(std::atomic<void*>& cache, const char* name) {
    void* f = cache.load(std::memory_order_relaxed);
    if (f == nullptr) {
        f = dlsym(RTLD_NEXT, name);
        cache.store(f, std::memory_order_relaxed);
    }
    return f;
}

// NUMALLOC_NEXT(pthread_create)(thread, attr, start, argument)
#define NUMALLOC_NEXT(name)                                                                      \
    ([]() {                                                                                      \
        static constinit std::atomic<void*> cache{nullptr};                                      \
        return reinterpret_cast<decltype(&::name)>(::numalloc::api::next_function(cache, #name)); \
    }())

}  // namespace numalloc::api
