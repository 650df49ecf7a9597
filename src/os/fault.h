// Invalid memory accesses: SIGSEGV and SIGBUS.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

enum class Access { unknown, read, write };

struct Fault {
    Address address = 0;
    Access access = Access::unknown;
    Address instruction = 0;  // 0 if unknown
};

// Installs `explain`, which is called at each fault, in the signal handler of the thread that faulted. If it returns
// true the process ends by the signal; otherwise the handler that the program had installed before is called. At most
// two functions, each once. A handler that the program installs later replaces ours. Returns false, and may be
// called again, if a filter (filter.h) may kill for sigaction.
bool on_fault(bool (*explain)(const Fault& fault));
// `explain` calls it as soon as it knows that it will return true. From then on a fault of the thread, in `explain`
// itself, ends the process: the program's handler might leave it by longjmp().
void begin_explanation();

}  // namespace numalloc::os
