// Annotations that say what a lock guards. Clang checks them: `cmake --preset clang`, tests/structure/thread_safety.py.
// They are empty for other compilers.
//
//   NUMALLOC_GUARDED_BY(lock)    a member or global: only a thread that holds the lock reads or writes it
//   NUMALLOC_REQUIRES(lock)      a function: its caller holds the lock
//   NUMALLOC_EXCLUDES(lock)      a function: its caller does not hold the lock, because the function acquires it,
//                                or must not wait under it
//
// Data that is read without a lock by design has no annotation: it is atomic, or constant once it is made.
#pragma once

#if defined(__clang__)
#define NUMALLOC_THREAD_SAFETY(x) __attribute__((x))
#else
#define NUMALLOC_THREAD_SAFETY(x)
#endif

#define NUMALLOC_GUARDED_BY(lock) NUMALLOC_THREAD_SAFETY(guarded_by(lock))
#define NUMALLOC_REQUIRES(...) NUMALLOC_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define NUMALLOC_EXCLUDES(...) NUMALLOC_THREAD_SAFETY(locks_excluded(__VA_ARGS__))

// For the locks themselves.
#define NUMALLOC_LOCK NUMALLOC_THREAD_SAFETY(capability("lock"))
#define NUMALLOC_SCOPED_LOCK NUMALLOC_THREAD_SAFETY(scoped_lockable)
#define NUMALLOC_ACQUIRES(...) NUMALLOC_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define NUMALLOC_TRIES_TO_ACQUIRE(...) NUMALLOC_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define NUMALLOC_RELEASES(...) NUMALLOC_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define NUMALLOC_ASSERTS_HELD(lock) NUMALLOC_THREAD_SAFETY(assert_capability(lock))

// For a function whose locks clang cannot follow; each use has a comment that says why.
#define NUMALLOC_NO_THREAD_SAFETY_ANALYSIS NUMALLOC_THREAD_SAFETY(no_thread_safety_analysis)
