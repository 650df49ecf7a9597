// Raw system calls: they return the result or -errno and never touch errno, so that free() keeps the caller's errno at
// no cost. No other floor includes this file.
#pragma once

#include <sys/syscall.h>

#include <type_traits>

namespace numalloc::os {

#if defined(__x86_64__)
inline long raw_syscall(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
inline long raw_syscall(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "numalloc knows x86-64 and aarch64"
#endif

template <class A>
inline long as_long(A a) {
    if constexpr (std::is_pointer_v<A>) return reinterpret_cast<long>(a);
    else return static_cast<long>(a);
}

template <class... A>
inline long call(long n, A... a) {
    return raw_syscall(n, as_long(a)...);
}

inline bool failed(long result) { return result < 0 && result > -4096; }

}  // namespace numalloc::os
