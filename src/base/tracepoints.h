// trace::NAME(...) passes a static tracepoint of tracepoints.def if <sys/sdt.h> (Debian: systemtap-sdt-dev) was there
// when the library was built; otherwise it does nothing.
#pragma once

#include <cstdint>

#if __has_include(<sys/sdt.h>)
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#endif

namespace numalloc::trace {

#if defined(STAP_PROBEV)
#define NUMALLOC_WITHOUT_BRACKETS(...) , __VA_ARGS__
// A second macro level, so that each name is an argument of its own.
#define NUMALLOC_PROBE(...) STAP_PROBEV(__VA_ARGS__)
#define NUMALLOC_TRACEPOINT(name, parameters, names, when)                                          \
    inline void name parameters { NUMALLOC_PROBE(numalloc, name NUMALLOC_WITHOUT_BRACKETS names); }
#else
#define NUMALLOC_WITHOUT_BRACKETS(...) __VA_ARGS__
#define NUMALLOC_TRACEPOINT(name, parameters, names, when)      \
    inline void name parameters {                               \
        [](const auto&...) {}(NUMALLOC_WITHOUT_BRACKETS names); \
    }
#endif
#include "base/tracepoints.def"
#undef NUMALLOC_TRACEPOINT
#undef NUMALLOC_PROBE
#undef NUMALLOC_WITHOUT_BRACKETS

}  // namespace numalloc::trace
