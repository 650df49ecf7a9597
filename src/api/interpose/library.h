// What the interposed functions ask of the library that they are linked into: libnumalloc.so, which
// has a heap (with_heap.cpp), or libnumalloc-binding.so, which has none (without_heap.cpp).
#pragma once

namespace numalloc::api {

// A pthread_create may be the first that the library hears of its process. Afterwards options,
// topology and placement are known, and fork is prepared for. Thread-safe.
void wake_library();
// The same without malloc. Also in a signal handler that has interrupted no lock of ours.
void complete_start();

// The calling thread belongs to another node from now on, or is no longer alone: its memory may have
// to come from elsewhere.
void thread_moved();

// Around an exec, which keeps the process: what the program says of itself must not be taken for the next one's. The
// second where it has returned. Safe in signal handlers, and between vfork and exec.
void before_exec();
void after_exec();

}  // namespace numalloc::api
