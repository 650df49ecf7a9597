// In a program under a sanitizer, the sanitizer's malloc must know of every block, and its interceptors around libc
// must not be called before they are ready. So the library steps aside: it has no heap, binds no thread, and passes its
// calls on to the sanitizer's functions. No thread ever gets a heap, so all of this is on slow paths.
#pragma once

#include <atomic>

namespace numalloc::api {

// The functions that are passed on. free is looked up first, because a look-up may call it.
// clang-format off
#define NUMALLOC_HANDED_ON(F) \
    F(free) F(malloc) F(calloc) F(realloc) F(memalign) F(aligned_alloc) F(posix_memalign) F(malloc_usable_size) \
    F(malloc_trim) F(malloc_stats) F(malloc_info) F(mallopt) F(mallinfo2)
// clang-format on
#define NUMALLOC_NUMBER(name) name,
enum class HandedOn : int { NUMALLOC_HANDED_ON(NUMALLOC_NUMBER) };
#undef NUMALLOC_NUMBER

// The sanitizer's name, or nullptr in a program without one. The dynamic linker knows it: a few loads, no call.
#if defined(NUMALLOC_STATIC)
inline const char* sanitizer() { return nullptr; }
inline bool stepped_aside() { return false; }
inline void* function_aside(HandedOn) { return nullptr; }
#else
const char* sanitizer();
inline bool stepped_aside() { return __builtin_expect(sanitizer() != nullptr, 0); }
// Returns nullptr unless the library has stepped aside.
void* function_aside(HandedOn which);
#endif

// The program may be linked with jemalloc, tcmalloc or mimalloc, which then lie behind this library in the search
// order. Blocks of functions that only those have (mallocx, as redis 8 and bind9 call it) come to free, realloc and
// malloc_usable_size, which pass them on: outside of the fork gate, because the other malloc has locks and fork
// handlers. It is looked up once, at the start: later the loader's lock may be another thread's.
#if defined(NUMALLOC_STATIC)
inline void find_malloc_behind() {}
inline bool malloc_is_behind() { return false; }
inline void* function_behind(HandedOn) { return nullptr; }
#else
void find_malloc_behind();
extern std::atomic<bool> has_malloc_behind;
inline bool malloc_is_behind() { return __builtin_expect(has_malloc_behind.load(std::memory_order_acquire), 0); }
// Its free, realloc or malloc_usable_size; nullptr if there is none, and for all others.
void* function_behind(HandedOn which);
#endif

// Usage: if (const auto next = NUMALLOC_ASIDE(malloc)) return next(n);
#define NUMALLOC_ASIDE(name)                                                                              \
    reinterpret_cast<decltype(&::name)>(::numalloc::api::function_aside(::numalloc::api::HandedOn::name))
#define NUMALLOC_BEHIND(name)                                                                              \
    reinterpret_cast<decltype(&::name)>(::numalloc::api::function_behind(::numalloc::api::HandedOn::name))

}  // namespace numalloc::api
