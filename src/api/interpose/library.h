// What the interposed functions need of the library that they are linked into: libnumalloc.so, which has a heap
// (with_heap.cpp), or libnumalloc-binding.so, which has none (without_heap.cpp).
#pragma once

namespace numalloc::api {

// Starts the library if needed: pthread_create may be the first call that it sees. Afterwards options, topology and
// placement are known, and fork is prepared for. Thread-safe.
void wake_library();
// The same without malloc. May be called in a signal handler that did not interrupt code under numalloc's locks.
void complete_start();

// Whether dlsym(), which may call malloc, would start the library.
extern const bool looking_up_starts_malloc;

// Called when the calling thread's node has changed, or it is no longer alone: another node may have to serve it.
void thread_moved();

// Called around an exec, which keeps the process ID: the next program must not appear with this one's statistics page.
// after_exec() is called if the exec fails. Safe in signal handlers, and between vfork and exec.
void before_exec();
void after_exec();

}  // namespace numalloc::api
