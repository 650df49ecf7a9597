// Which allocations are recorded. Each byte that a program requests is chosen with the same small probability, one in
// `period`, and an object is recorded if one of its bytes is chosen (a Poisson process over all bytes). So an object of
// n bytes is recorded with probability p = 1 - exp(-n / period), and a recorded one stands for 1 / p objects: no size
// is over- or underestimated.
//
// The process is memoryless. So each class of each thread can draw for itself how many objects come before the next
// recorded one, and may draw again at any time. Objects that do not come from a list are decided one by one.
#pragma once

#include "base/random.h"

namespace numalloc::profile {

// A sample of the exponential distribution with mean 1. `random` is uniform over all 64-bit numbers.
double exponential(std::uint64_t random);

// 1 - exp(-x) for x >= 0, accurate for small x too.
double one_minus_exp(double x);

struct Sampling {
    static constexpr Bytes largest_period = GiB;
    Bytes period = largest_period;

    // The probability that an object of `size` bytes is recorded, and the number of objects that it then stands for.
    double chance(Bytes size) const { return one_minus_exp(static_cast<double>(size) / static_cast<double>(period)); }
    double weight(Bytes size) const { return 1.0 / chance(size); }

    // The number of objects of that size before the next recorded one.
    std::int32_t distance(Bytes size, std::uint64_t random) const;
    // Whether to record one object of that size.
    bool chooses(Bytes size, std::uint64_t random) const;
};

}  // namespace numalloc::profile
