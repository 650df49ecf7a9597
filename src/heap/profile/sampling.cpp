#include "heap/profile/sampling.h"

#include <bit>

// This file has its own logarithm and exponential: the library links libc only, which has neither.
namespace numalloc::profile {

namespace {

constexpr double ln2 = 0.693147180559945309417;
constexpr double root2 = 1.41421356237309504880;
constexpr unsigned mantissa_bits = 52;

// The natural logarithm of a normal x > 0. With x = m * 2^e, m near 1: ln m = 2 artanh((m - 1) / (m + 1)).
double ln(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    int e = static_cast<int>(bits >> mantissa_bits) - 1023;
    double m = std::bit_cast<double>((bits & ((std::uint64_t{1} << mantissa_bits) - 1)) |
                                     (std::uint64_t{1023} << mantissa_bits));
    if (m > root2) {
        m /= 2;
        ++e;
    }
    const double s = (m - 1) / (m + 1);
    double sum = 0;
    for (int k = 19; k >= 1; k -= 2) sum = sum * s * s + 1.0 / k;
    return 2 * s * sum + e * ln2;
}

// 1 - exp(-x) for x < 1/2, by its series.
double series(double x) {
    double sum = 0;
    for (int k = 15; k >= 1; --k) sum = x / k * (1 - sum);
    return sum;
}

}  // namespace

double exponential(std::uint64_t random) {
    // In (0, 1].
    const double u = static_cast<double>((random >> 11) + 1) * 0x1p-53;
    return -ln(u);
}

double one_minus_exp(double x) {
    if (x > 60) return 1;
    // exp(-x) = exp(-x / 2^k)^(2^k)
    unsigned k = 0;
    while (x >= 0.5) {
        x /= 2;
        ++k;
    }
    double rest = series(x);
    for (; k > 0; --k) rest = rest * (2 - rest);
    return rest;
}

std::int32_t Sampling::distance(Bytes size, std::uint64_t random) const {
    // P(at least k) = exp(-k * size / period). With a period of at most largest_period, results beyond the limit are
    // very rare.
    const double objects = exponential(random) * static_cast<double>(period) / static_cast<double>(size);
    constexpr double most = 1 << 30;
    return static_cast<std::int32_t>(min_of(objects, most));
}

bool Sampling::chooses(Bytes size, std::uint64_t random) const {
    return static_cast<double>(random >> 11) * 0x1p-53 < chance(size);
}

}  // namespace numalloc::profile
