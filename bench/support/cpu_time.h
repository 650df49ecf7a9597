#pragma once

#include <ctime>

namespace bench {

/// Processor seconds of all threads of the process so far, in the program and in the kernel.
inline double cpu_time() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace bench
