// Writes stacks to stderr below a report, for `numalloc symbolize`:
//
//       WHAT by thread N:
//         #0 0xADDRESS FILE+0xOFFSET
//
// Takes no lock and nothing from the heap, which may be damaged. Reads /proc/self/maps for the files.
#pragma once

#include "heap/profile/code.h"

namespace numalloc::profile {

void say_stack(CodeMappings& code, const char* what, int thread, const Address* frame, unsigned depth);

// Writes the calling thread's stack without the library's own frames. `from`: the instruction that faulted, or 0;
// frames further in belong to the signal and are skipped.
void say_own_stack(CodeMappings& code, const char* what, Address from);

// An os::SayStack.
void say_caller(const char* what, Address from);

}  // namespace numalloc::profile
