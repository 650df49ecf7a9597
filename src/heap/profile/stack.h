// Return addresses of the calling thread, by the program's own unwinder (libgcc_s). It reads the tables that compilers
// write beside the code, and needs no frame pointers. Every C++ program has it; other programs have it if it is
// preloaded. It takes no lock (glibc 2.35, gcc 12) and allocates nothing.
#pragma once

#include "base/bits.h"

namespace numalloc::profile {

constexpr unsigned deepest_stack = 128;

// Addresses inside the calls, innermost first, beginning with the first call that is not in the library.
struct Stack {
    std::uint32_t depth = 0;
    Address frame[deepest_stack];
};

// Where the calls of a thread's last stack lay on it, innermost first. Unwinding a call is slow, and most outer calls
// are the same each time: where the return addresses are still in place, capture() copies the calls from here.
struct Trail {
    std::uint32_t length = 0;
    struct Call {
        Address returns_to;
        Address stack;  // the return address is in the word below
    } call[deepest_stack];
};

// Whether the process has an unwinder.
bool has_unwinder();

// libc's _dl_find_object(): 0 if code of a file is at the address. It needs no lock.
using FindObject = int (*)(void* address, void* result);

// Allows capture() to call the unwinder. In a static program, code that allocates builds its tables shortly before
// main. `find`: nullptr before glibc 2.35, and then stacks do not end at code that was made at run time.
void allow_stacks(FindObject find);

// Captures the calling thread's stack: an empty one without an unwinder, or before allow_stacks(). `trail`: the calling
// thread's, or nullptr.
void capture(Stack& stack, Trail* trail);

}  // namespace numalloc::profile
