// The library's fork handlers, and their registration with libc.
#pragma once

namespace numalloc::api {

// Registers the three functions below with libc, once. Thread-safe.
void register_fork_handlers();

// Defined by the library that is linked: in initialise.cpp, or without_heap.cpp. They may be called before the start of
// the library. Between prepare and the others the forking thread may allocate.
void fork_prepare();
void fork_parent();
void fork_child();

}  // namespace numalloc::api
