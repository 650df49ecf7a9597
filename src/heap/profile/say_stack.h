// Stacks on stderr, of whoever is to be told who did something wrong. `numalloc symbolize` reads them.
//
//       WHAT by thread N:
//         #0 0xADDRESS FILE+0xOFFSET
//
// No lock is taken and nothing allocated: both may be what is broken.
#pragma once

#include "heap/profile/code.h"

namespace numalloc::profile {

void say_stack(CodeMappings& code, const char* what, int thread, const Address* frame, unsigned depth);

// The calling thread's, as far as it is the program's. `from`: the instruction that met a fault; what lies further in is the
// signal's. 0: there was none.
void say_own_stack(CodeMappings& code, const char* what, Address from);

// The same by itself: an os::Backtrace.
void say_backtrace(const char* what, Address from);

}  // namespace numalloc::profile
