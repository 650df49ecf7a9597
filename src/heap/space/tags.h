// The tags (os/tags.h) that the hardened library gives to objects of up to policy::most_tagged bytes, where there are any. In the
// other libraries nothing of it is left.
//
//   in use    |  the program's: a tag by chance, 1 to 15, and so has its pointer  | canary, origin: 0 |
//   all else  0: free and never used memory, larger objects, the library's own
//
// A tag differs from that which the memory had before: the mark of a free object keeps it (freed.h).
//
// So an access to a freed object, behind the end of one or in front of it is a fault at once. The library works with pointers
// without a tag: locate() and the fast path of free compare a program's pointer with the memory and take the tag off, and arm()
// gives it (freed.h). What the library reads of an object in use it reads by as_in_memory().
#pragma once

#include "base/bits.h"
#include "heap/space/policy.h"

namespace numalloc::tags {

#if defined(NUMALLOC_HARDENED) && defined(__aarch64__)

#define NUMALLOC_HAS_TAGS
inline constexpr bool possible = true;
inline constexpr std::uint64_t most = 15;

// Those of a pointer that are its tag; 0 where memory has none.
extern Address bits;
// Before the heap begins.
void start();

inline bool on() { return bits != 0; }

template <class T>
inline T* untagged(T* p) {
    return reinterpret_cast<T*>(address_of(p) & ~bits);
}

// The instructions are younger than the processors that the library runs on.
#define NUMALLOC_TAGS ".arch armv8.5-a+memtag\n\t"

// The pointer that may read there. Of memory with access only.
template <class T>
inline T* as_in_memory(T* p) {
    Address a = address_of(p) & ~bits;
    if (on()) __asm__ volatile(NUMALLOC_TAGS "ldg %0, [%0]" : "+r"(a) : : "memory");
    return reinterpret_cast<T*>(a);
}

// The memory gets the tag of the pointer; `bytes` is a multiple of 16.
inline void put(Address p, Bytes bytes) {
    if (bytes % 32 != 0) __asm__ volatile(NUMALLOC_TAGS "stg %0, [%0], #16" : "+r"(p) : : "memory");
    for (Bytes left = bytes / 32; left > 0; --left) __asm__ volatile(NUMALLOC_TAGS "st2g %0, [%0], #32" : "+r"(p) : : "memory");
}

// So many bytes come into use, which had the tag `last`: the pointer for the program.
inline void* give(void* p, Bytes bytes, std::uint64_t last) {
    if (!on() || bytes > policy::most_tagged) return p;
    Address a = address_of(p);
    __asm__ volatile(NUMALLOC_TAGS "irg %0, %0, %1" : "+r"(a) : "r"(std::uint64_t{1} << last));
    put(a, bytes);
    return reinterpret_cast<void*>(a);
}
// They are free from now on. The tag that they had.
inline std::uint64_t take(void* p, Bytes bytes) {
    if (!on() || bytes > policy::most_tagged) return 0;
    const std::uint64_t last = address_of(as_in_memory(p)) >> 56;
    put(address_of(p), bytes);
    return last;
}

#undef NUMALLOC_TAGS

#else

inline constexpr bool possible = false;
inline constexpr std::uint64_t most = 0;

inline void start() {}
inline bool on() { return false; }
template <class T>
constexpr T* untagged(T* p) {
    return p;
}
template <class T>
constexpr T* as_in_memory(T* p) {
    return p;
}
inline void* give(void* p, Bytes, std::uint64_t) { return p; }
inline std::uint64_t take(void*, Bytes) { return 0; }

#endif

}  // namespace numalloc::tags
