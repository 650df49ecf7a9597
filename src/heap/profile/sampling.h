// Which allocations are recorded: each byte that a program asks for with the same small probability, one in `period`,
// and an object if one of its bytes is (a Poisson process over all bytes). So an object of n bytes is recorded with
// probability 1 - exp(-n / period), and a recorded one stands for as many as the inverse of that: no size is over- or
// underestimated.
//
// The process has no memory. So each class of each thread can draw for itself how many objects come before the next
// recorded one, and may draw anew at any time; and what is allocated one by one is asked one by one.
#pragma once

#include "base/random.h"

namespace numalloc::profile {

// The exponential distribution with mean 1, from a number that is any of 2^64.
double exponential(std::uint64_t random);

// 1 - exp(-x), x >= 0: exact for small x, too.
double one_minus_exp(double x);

struct Sampling {
    static constexpr Bytes largest_period = GiB;
    Bytes period = largest_period;

    // The probability that an object of `size` bytes is recorded, and the number of objects that it then stands for.
    double chance(Bytes size) const { return one_minus_exp(static_cast<double>(size) / static_cast<double>(period)); }
    double weight(Bytes size) const { return 1.0 / chance(size); }

    // Objects of that size before the next that is recorded.
    std::int32_t distance(Bytes size, std::uint64_t random) const;
    // Whether one object is recorded.
    bool chooses(Bytes size, std::uint64_t random) const;
};

}  // namespace numalloc::profile
