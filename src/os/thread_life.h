// Whether the thread that owns something is still alive, known without a system call: by a robust mutex, which the
// kernel marks however its owner ends.
#pragma once

#include <pthread.h>

#include <atomic>

namespace numalloc::os {

// libc's functions. The shared libraries have them by names that no program replaces (api/interpose/mutexes.cpp).
struct MutexCalls {
    int (*init)(pthread_mutex_t*, const pthread_mutexattr_t*);
    int (*lock)(pthread_mutex_t*);
    int (*trylock)(pthread_mutex_t*);
    int (*unlock)(pthread_mutex_t*);
};

class ThreadLife {
public:
    // Makes the calling thread the owner, whatever the state was. No other thread may call anything here at the same
    // time.
    void begin();
    // Called by the owner when it no longer needs what it owns.
    void end();
    // Whether the owner ended without end(). Returns true once; the state is then as after end(). One caller at a time.
    // Always false if the kernel does not mark mutexes.
    bool has_ended();

private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    // After end(), the mutex is still locked: the program has freed or unmapped a robust mutex that the owner had
    // locked, and unlocking ours would write to it.
    std::atomic<bool> stays_locked_{false};
};

}  // namespace numalloc::os
