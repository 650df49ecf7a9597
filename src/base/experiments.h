// Whether this library was configured with -DNUMALLOC_EXPERIMENTS=ON: it then reads the options for experiments
// (options.def), each of which turns off one mechanism or changes it. In any other library nothing asks for them.
#pragma once

namespace numalloc {

#if defined(NUMALLOC_EXPERIMENTS)
constexpr bool experiments = true;
#else
constexpr bool experiments = false;
#endif

}  // namespace numalloc
