#include "api/malloc/aside.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>

#include "api/interpose/next.h"

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
    void* const next = symbol_behind(name);
    if (symbol_behind("malloc") != symbol_behind("__libc_malloc")) return next;
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

constinit std::atomic<bool> has_malloc_behind{false};

namespace {

constexpr HandedOn passed_on[] = {HandedOn::free, HandedOn::realloc, HandedOn::malloc_usable_size};
constinit void* behind[sizeof names / sizeof *names] = {};  // written before has_malloc_behind

const void* object_of(void* f) {
    Dl_info found{};
    return dladdr(f, &found) != 0 ? found.dli_fbase : nullptr;
}

// All three must be of the library that has `own`: another one's would not know the blocks.
bool find_beside(void* own) {
    for (const HandedOn which : passed_on) {
        void*& function = behind[static_cast<int>(which)];
        function = symbol_behind(names[static_cast<int>(which)]);
        if (function == nullptr || object_of(function) != object_of(own)) return false;
    }
    return true;
}

}  // namespace

void find_malloc_behind() {
    if (is_of_libc(symbol_behind("malloc"))) return;
    for (const char* const own : {"mallocx", "tc_malloc", "mi_malloc"}) {
        void* const its = symbol_behind(own);
        if (its == nullptr || !find_beside(its)) continue;
        has_malloc_behind.store(true, std::memory_order_release);
        break;
    }
    dlerror();  // the program did not ask
}

void* function_behind(HandedOn which) { return malloc_is_behind() ? behind[static_cast<int>(which)] : nullptr; }

}  // namespace numalloc::api
