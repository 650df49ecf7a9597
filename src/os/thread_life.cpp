#include "os/thread_life.h"

#include <cerrno>

// Defined in the shared libraries.
extern "C" __attribute__((weak)) const numalloc::os::MutexCalls numalloc_mutex_calls;

namespace numalloc::os {

namespace {

constexpr MutexCalls plain{pthread_mutex_init, pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_unlock};

const MutexCalls& calls() { return &numalloc_mutex_calls != nullptr ? numalloc_mutex_calls : plain; }

}  // namespace

void ThreadLife::begin() {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    // ENOTSUP if the kernel has no robust lists.
    if (calls().init(&mutex_, &robust) != 0) calls().init(&mutex_, nullptr);
    pthread_mutexattr_destroy(&robust);
    calls().lock(&mutex_);
}

void ThreadLife::end() { calls().unlock(&mutex_); }

bool ThreadLife::has_ended() {
    const int owner = calls().trylock(&mutex_);
    if (owner == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    else if (owner != 0) return false;
    calls().unlock(&mutex_);
    return owner == EOWNERDEAD;
}

}  // namespace numalloc::os
