// Arithmetic on sizes and addresses, and hints for the hot path.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numalloc {

using Bytes = std::size_t;
using Address = std::uintptr_t;

#define NUMALLOC_LIKELY(x) __builtin_expect(!!(x), 1)
#define NUMALLOC_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NUMALLOC_INLINE inline __attribute__((always_inline))
// A thread-local variable that one load finds, and that is initialised without code.
#define NUMALLOC_THREAD_LOCAL constinit thread_local __attribute__((tls_model("initial-exec")))
#define NUMALLOC_COLD __attribute__((noinline, cold))

constexpr Bytes KiB = 1024;
constexpr Bytes MiB = 1024 * KiB;
constexpr Bytes GiB = 1024 * MiB;
constexpr Bytes TiB = 1024 * GiB;

constexpr bool is_power_of_two(Bytes n) { return n != 0 && (n & (n - 1)) == 0; }

// `alignment` is a power of two; the sum must not overflow.
constexpr Bytes align_up(Bytes n, Bytes alignment) { return (n + alignment - 1) & ~(alignment - 1); }
constexpr Bytes align_down(Bytes n, Bytes alignment) { return n & ~(alignment - 1); }

constexpr Bytes divide_up(Bytes n, Bytes d) { return (n + d - 1) / d; }

// Position of the highest set bit; n > 0.
constexpr unsigned log2_floor(std::uint64_t n) { return 63U - static_cast<unsigned>(__builtin_clzll(n)); }

// How many bits are set. The compiler's own needs a function of libgcc and its table, unless a flag names the CPU.
constexpr unsigned count_ones(std::uint64_t n) {
    n -= n >> 1 & 0x5555555555555555;
    n = (n & 0x3333333333333333) + (n >> 2 & 0x3333333333333333);
    n = (n + (n >> 4)) & 0x0F0F0F0F0F0F0F0F;
    return static_cast<unsigned>(n * 0x0101010101010101 >> 56);
}
static_assert(count_ones(0) == 0 && count_ones(~std::uint64_t{0}) == 64 && count_ones(0x8000000000001006) == 4);

template <class T>
constexpr T min_of(T a, T b) {
    return b < a ? b : a;
}
template <class T>
constexpr T max_of(T a, T b) {
    return a < b ? b : a;
}

inline Address address_of(const void* p) { return reinterpret_cast<Address>(p); }

}  // namespace numalloc
