#include "api/malloc/aside.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __hwasan_init();
__attribute__((weak)) void __tsan_init();
__attribute__((weak)) void __msan_init();
__attribute__((weak)) void __lsan_init();
__attribute__((weak)) void __memprof_init();
}

namespace numalloc::api {

const char* sanitizer() {
    if (__asan_init != nullptr) return "AddressSanitizer";
    if (__tsan_init != nullptr) return "ThreadSanitizer";
    if (__msan_init != nullptr) return "MemorySanitizer";
    if (__lsan_init != nullptr) return "LeakSanitizer";
    if (__hwasan_init != nullptr) return "HWAddressSanitizer";
    return __memprof_init != nullptr ? "the memory profiler" : nullptr;
}

namespace {

#define NUMALLOC_NAME(name) #name,
constexpr const char* names[] = {NUMALLOC_HANDED_ON(NUMALLOC_NAME)};
#undef NUMALLOC_NAME

bool is_ours(void* f) {
    Dl_info other{};
    Dl_info own{};
    return dladdr(f, &other) != 0 && dladdr(names, &own) != 0 && other.dli_fbase == own.dli_fbase;
}

// A sanitizer's shared run-time follows numalloc in the search order, unless it was preloaded first. A static one is in
// the program itself, and then only libc follows: its malloc is also __libc_malloc, which no sanitizer defines.
// Functions that the run-time does not define are libc's.
void* look_up(const char* name) {
    void* const next = dlsym(RTLD_NEXT, name);
    if (dlsym(RTLD_NEXT, "malloc") != dlsym(RTLD_NEXT, "__libc_malloc")) return next;
    void* const first = dlsym(RTLD_DEFAULT, name);
    return first == nullptr || is_ours(first) ? next : first;
}

}  // namespace

void* function_aside(HandedOn which) {
    if (!stepped_aside()) return nullptr;
    static constinit std::atomic<void*> found[sizeof names / sizeof *names];
    const std::atomic<void*>& wanted = found[static_cast<int>(which)];
    if (wanted.load(std::memory_order_relaxed) == nullptr) {
        // Looks all up at the first call, a malloc: then no error message of an earlier look-up is pending, which
        // dlsym() would free.
        for (std::size_t i = 0; i < sizeof names / sizeof *names; ++i)
            found[i].store(look_up(names[i]), std::memory_order_relaxed);
    }
    return wanted.load(std::memory_order_relaxed);
}

}  // namespace numalloc::api
