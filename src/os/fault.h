// A wrong access to memory: SIGSEGV and SIGBUS.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

enum class Access { unknown, read, write };

struct Fault {
    Address address = 0;
    Access access = Access::unknown;
    Address instruction = 0;  // 0 where it is not known
};

// From now on `explain(fault)` is called first, on the thread that met the fault. Where it returns true the process
// ends by the signal. Two may be named, each once. Other faults go to whom the program had named before. Who is named
// later takes our place.
void on_fault(bool (*explain)(const Fault& fault));

}  // namespace numalloc::os
