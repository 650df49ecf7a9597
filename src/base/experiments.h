// Whether this library was configured with -DNUMALLOC_EXPERIMENTS=ON. It then reads the options for experiments
// (options.def), each of which turns off or changes one mechanism. Other libraries contain no code for them.
#pragma once

namespace numalloc {

#if defined(NUMALLOC_EXPERIMENTS)
constexpr bool experiments = true;
#else
constexpr bool experiments = false;
#endif

}  // namespace numalloc
