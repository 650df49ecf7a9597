// Reports the wrong use of a guarded object on stderr: a line for the error, and stacks for `numalloc symbolize`.
#pragma once

#include "heap/space/guarded_slots.h"
#include "os/fault.h"

namespace numalloc::guarded {

// Returns false if the address is not in the guarded region.
bool explain(const os::Fault& fault);

// For a call with an invalid pointer, and for one that finds the bytes beside its object overwritten.
[[noreturn]] void die_of(const char* call, const void* p, const char* why);

}  // namespace numalloc::guarded
