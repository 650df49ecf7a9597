// The malloc family. Every function here is thread-safe; none throws; free keeps errno.
//
//   malloc(n)   allocate_fast: pop from the thread's list of n's class
//     empty       -> allocate_slow -> refill: the sealed list, or a batch from the node
//   free(p)     push: an object of the thread's own node, with room in the list
//     else        -> free_slow -> free_object: a full list, another node's object, or a big one
#include <malloc.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "api/export.h"
#include "api/malloc/allocate.h"
#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "api/malloc/make_room.h"
#include "api/malloc/promises.h"
#include "heap/program_heaps/any_object.h"
#include "os/memory.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

NUMALLOC_COLD void* malloc_failed(Bytes n) {
    if (void* p = after_making_room(n, [n] { return allocate_slow(n).p; })) return p;
    const auto next = NUMALLOC_ASIDE(malloc);
    return next != nullptr ? next(n) : no_memory();
}

__attribute__((noinline)) void* malloc_slow(Bytes n) {
    void* p = allocate_slow(n).p;
    return NUMALLOC_LIKELY(p != nullptr) ? p : malloc_failed(n);
}

// Clears an object of at most 128 bytes by whole granules, from both ends, without a loop or a call.
constexpr Bytes largest_tiny_clear = 128;
NUMALLOC_INLINE void clear_tiny(void* p, Bytes n) {
    using Granule = char __attribute__((vector_size(16), aligned(16), may_alias));
    auto* const first = static_cast<Granule*>(p);
    auto* const end = reinterpret_cast<Granule*>(static_cast<char*>(p) + align_up(n, granule));
    first[0] = end[-1] = Granule{};
    if (end <= first + 2) return;
    first[1] = end[-2] = Granule{};
    if (end <= first + 4) return;
    first[2] = end[-3] = first[3] = end[-4] = Granule{};
}

NUMALLOC_COLD void* calloc_failed(Bytes n) {
    void* const p = after_making_room(n, [n] {
        const Allocation object = allocate_slow(n);
        if (object.p != nullptr) clear(object, n);
        return object.p;
    });
    if (p != nullptr) return p;
    const auto next = NUMALLOC_ASIDE(calloc);
    return next != nullptr ? next(1, n) : no_memory();
}

__attribute__((noinline)) void* calloc_slow(Bytes n) {
    Allocation object{allocate_fast(n)};
    if (object.p == nullptr) object = allocate_slow(n);
    if (object.p == nullptr) return calloc_failed(n);
    clear(object, n);
    return object.p;
}

NUMALLOC_COLD void* realloc_failed(void* p, Bytes n) {
    void* const q = after_making_room(n, [p, n] { return reallocate(p, n, "realloc"); });
    return q != nullptr ? q : no_memory();
}

bool valid_alignment(Bytes alignment) { return is_power_of_two(alignment); }

void* aligned_or_no_memory(Bytes alignment, Bytes n) {
    void* p = allocate_aligned(n, alignment);
    if (p != nullptr) return p;
    const auto next = NUMALLOC_ASIDE(memalign);
    return next != nullptr ? next(alignment, n) : no_memory();
}

// Frees for free() and its relatives. The hardened library ends a program that passes an object of operator new.
NUMALLOC_INLINE void free_of_malloc(void* p, const char* call) {
    const Pushed pushed = push(this_thread_heap, p);
    if (NUMALLOC_LIKELY(pushed == Pushed::done)) return;
    if constexpr (hardened) end_if_not_of_origin(p, origin_of(Form::malloc, 0), call);
    free_slow(p, pushed, call);
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT void* malloc(size_t n) {
    void* p = allocate_fast(n);
    return NUMALLOC_LIKELY(p != nullptr) ? p : malloc_slow(n);
}

NUMALLOC_EXPORT void free(void* p) { free_of_malloc(p, "free"); }

NUMALLOC_EXPORT void* calloc(size_t count, size_t size) {
    size_t n;
    if (NUMALLOC_UNLIKELY(__builtin_mul_overflow(count, size, &n))) return no_memory();
    if (NUMALLOC_LIKELY(!hardened && n <= largest_tiny_clear)) {
        if (void* p = pop(this_thread_heap, (n + granule - 1) >> granule_shift)) {
            clear_tiny(p, n);
            return p;
        }
    }
    return calloc_slow(n);
}

// n == 0 frees `p`, as in glibc.
NUMALLOC_EXPORT void* realloc(void* p, size_t n) {
    if (p == nullptr || n == 0) {
        if (p == nullptr) return malloc(n);
        free_of_malloc(p, "realloc");
        return nullptr;
    }
    if constexpr (hardened) end_if_not_of_origin(p, origin_of(Form::malloc, 0), "realloc");
    void* q = reallocate(p, n, "realloc");
    return NUMALLOC_LIKELY(q != nullptr) ? q : realloc_failed(p, n);
}

NUMALLOC_EXPORT int posix_memalign(void** result, size_t alignment, size_t n) {
    if (!valid_alignment(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    void* p = allocate_aligned(n, alignment);
    if (p == nullptr) {
        const auto next = NUMALLOC_ASIDE(posix_memalign);
        if (next != nullptr) return next(result, alignment, n);
        no_memory();  // as with glibc errno says it, too
        return ENOMEM;
    }
    *result = p;
    return 0;
}

NUMALLOC_EXPORT void* aligned_alloc(size_t alignment, size_t n) {
    if (!valid_alignment(alignment)) {
        errno = EINVAL;
        return nullptr;
    }
    return aligned_or_no_memory(alignment, n);
}

// Like glibc, rounds an alignment that is no power of two up to one.
NUMALLOC_EXPORT void* memalign(size_t alignment, size_t n) {
    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return nullptr;
    }
    if (!valid_alignment(alignment)) alignment = alignment == 0 ? 1 : Bytes{2} << log2_floor(alignment);
    return aligned_or_no_memory(alignment, n);
}

NUMALLOC_EXPORT void* valloc(size_t n) { return aligned_or_no_memory(os::page_size(), n); }

NUMALLOC_EXPORT void* pvalloc(size_t n) {
    const Bytes page = os::page_size();
    if (n > largest_request - page) return no_memory();
    return aligned_or_no_memory(page, align_up(max_of<Bytes>(n, 1), page));
}

NUMALLOC_EXPORT void cfree(void* p) { free_of_malloc(p, "cfree"); }

// C23. The hardened library checks the size and alignment.
NUMALLOC_EXPORT void free_sized(void* p, [[maybe_unused]] size_t n) {
    if constexpr (hardened) end_if_not_resized_to(p, n, "free_sized");
    free_of_malloc(p, "free_sized");
}
NUMALLOC_EXPORT void free_aligned_sized(void* p, [[maybe_unused]] size_t alignment, [[maybe_unused]] size_t n) {
    if constexpr (hardened) end_if_not_of_size(p, n, alignment, "free_aligned_sized");
    free_of_malloc(p, "free_aligned_sized");
}

NUMALLOC_EXPORT size_t malloc_usable_size(void* p) {
    if (p == nullptr) return 0;
    if (const auto next = NUMALLOC_ASIDE(malloc_usable_size)) return next(p);
    const Location at = locate(p);
    if (NUMALLOC_UNLIKELY(at.found == Found::foreign && awake()))
        if (const auto next = NUMALLOC_BEHIND(malloc_usable_size)) return next(p);
    return size_of(located_object(at, p, "malloc_usable_size"));
}

// For programs that call glibc's internal names and free the results with free().
#if __has_attribute(copy)
#define NUMALLOC_ALIAS(name) __attribute__((alias(#name), visibility("default"), copy(name)))
#else
#define NUMALLOC_ALIAS(name) __attribute__((alias(#name), visibility("default")))
#endif
void* __libc_malloc(size_t) NUMALLOC_ALIAS(malloc);
void __libc_free(void*) NUMALLOC_ALIAS(free);
void __libc_cfree(void*) NUMALLOC_ALIAS(cfree);
void* __libc_calloc(size_t, size_t) NUMALLOC_ALIAS(calloc);
void* __libc_realloc(void*, size_t) NUMALLOC_ALIAS(realloc);
void* __libc_memalign(size_t, size_t) NUMALLOC_ALIAS(memalign);
void* __libc_valloc(size_t) NUMALLOC_ALIAS(valloc);
void* __libc_pvalloc(size_t) NUMALLOC_ALIAS(pvalloc);
int __posix_memalign(void**, size_t, size_t) NUMALLOC_ALIAS(posix_memalign);

}  // extern "C"
