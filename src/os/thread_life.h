// Whether the thread that has something still lives, told without a system call: by a robust mutex, which the kernel
// marks when its owner ends in whatever way.
#pragma once

#include <pthread.h>

namespace numalloc::os {

// libc's functions. The shared libraries have them by names that nobody replaces (api/interpose/mutexes.cpp).
struct MutexCalls {
    int (*init)(pthread_mutex_t*, const pthread_mutexattr_t*);
    int (*lock)(pthread_mutex_t*);
    int (*trylock)(pthread_mutex_t*);
    int (*unlock)(pthread_mutex_t*);
};

class ThreadLife {
public:
    // The calling thread has it, whatever it was before. Nobody else calls anything meanwhile.
    void begin();
    // By that thread: it has let go.
    void end();
    // Whether the thread ended without end(). Says so once; then it is as after end(). One caller at a time. false
    // where the kernel marks no mutexes.
    bool has_ended();

private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace numalloc::os
