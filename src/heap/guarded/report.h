// What is said of a wrong use of a guarded object, on stderr: a line that says what, and the stacks, which `numalloc
// symbolize` reads.
#pragma once

#include "heap/space/guarded_slots.h"
#include "os/fault.h"

namespace numalloc::guarded {

// false where the address is none of ours.
bool explain(const os::Fault& fault);

// Of a call with a pointer that it must not get, or of one that finds the bytes beside its object overwritten.
[[noreturn]] void die_of(const char* call, const void* p, const char* why);

}  // namespace numalloc::guarded
