// The library's fork handlers, and their registration with libc.
#pragma once

namespace numalloc::api {

// Registers the three functions below with libc, once. Thread-safe.
void register_fork_handlers();

// Defined by the library that is linked: in initialise.cpp, or without_heap.cpp. They may be called before the start of
// the library. Between prepare and the others the forking thread may allocate.
void fork_prepare();
// As heap_fork_prepare_briefly(): if it is false, no other one may be called.
bool fork_prepare_briefly();
void fork_parent();
void fork_child();

}  // namespace numalloc::api
