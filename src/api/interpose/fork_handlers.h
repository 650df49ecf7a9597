// What the library does when the process forks, and that libc knows of it.
#pragma once

namespace numalloc::api {

// Tells libc of the three functions below, once. Thread-safe.
void register_fork_handlers();

// Of the library that is linked: initialise.cpp, or without_heap.cpp. They may be called before anything is
// initialised; between prepare and the others the forking thread may allocate.
void fork_prepare();
void fork_parent();
void fork_child();

}  // namespace numalloc::api
