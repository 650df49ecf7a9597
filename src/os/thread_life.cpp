#include "os/thread_life.h"

#include "os/libc_call.h"

namespace numalloc::os {

// Others may have put functions of their own in place of libc's, which may call malloc.

void ThreadLife::begin() {
    const LibcCall call;
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    // ENOTSUP where the kernel has no robust lists.
    if (pthread_mutex_init(&mutex_, &robust) != 0) pthread_mutex_init(&mutex_, nullptr);
    pthread_mutexattr_destroy(&robust);
    pthread_mutex_lock(&mutex_);
}

void ThreadLife::end() {
    const LibcCall call;
    pthread_mutex_unlock(&mutex_);
}

bool ThreadLife::has_ended() {
    const LibcCall call;
    const int owner = pthread_mutex_trylock(&mutex_);
    if (owner == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    else if (owner != 0) return false;
    pthread_mutex_unlock(&mutex_);
    return owner == EOWNERDEAD;
}

}  // namespace numalloc::os
