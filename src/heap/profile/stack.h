// Who allocates: the return addresses of the calling thread, by the program's own unwinder (libgcc_s), which reads the
// tables that compilers write beside the code; frame pointers are not needed. It is there in every C++ program, and in
// others when it is preloaded. It takes no lock (glibc 2.35, gcc 12) and allocates nothing.
#pragma once

#include "base/bits.h"

namespace numalloc::profile {

constexpr unsigned deepest_stack = 128;

// Addresses inside the calls, innermost first, from the first that is not the library's own on.
struct Stack {
    std::uint32_t depth = 0;
    Address frame[deepest_stack];
};

// Where the calls of a thread's last stack were on it, innermost first. Unwinding takes some 1,000 instructions a call;
// but most outer calls are the same again: where the return addresses still lie where they lay, they are taken from
// here.
struct Trail {
    std::uint32_t length = 0;
    struct Call {
        Address returns_to;
        Address stack;  // the return address is right below
    } call[deepest_stack];
};

// Whether stacks can be had at all.
bool has_unwinder();

// From now on the unwinder may be called: in a static program its tables are made shortly before main, by code that
// allocates.
void allow_stacks();

// Without an unwinder, or before it may be called, it stays empty.
// `trail`: the calling thread's, or nullptr.
void capture(Stack& stack, Trail* trail);

}  // namespace numalloc::profile
