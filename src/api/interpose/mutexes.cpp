// libc's mutex functions by the names that other libraries do not replace. Lock profilers and checkers replace
// pthread_mutex_lock and its relatives. Some of them call malloc under a lock of their own, for which the heap must not
// wait.
#include "os/thread_life.h"

#if defined(__x86_64__)
#define NUMALLOC_LIBC_VERSION "GLIBC_2.2.5"
#else
#define NUMALLOC_LIBC_VERSION "GLIBC_2.17"
#endif

extern "C" {
#define NUMALLOC_LIBC_MUTEX(call, ...)                                                                       \
    __asm__(".symver numalloc_libc_mutex_" #call ", __pthread_mutex_" #call "@" NUMALLOC_LIBC_VERSION "\n"); \
    int numalloc_libc_mutex_##call(__VA_ARGS__) noexcept;
NUMALLOC_LIBC_MUTEX(init, pthread_mutex_t*, const pthread_mutexattr_t*)
NUMALLOC_LIBC_MUTEX(lock, pthread_mutex_t*)
NUMALLOC_LIBC_MUTEX(trylock, pthread_mutex_t*)
NUMALLOC_LIBC_MUTEX(unlock, pthread_mutex_t*)

extern const numalloc::os::MutexCalls numalloc_mutex_calls;
const numalloc::os::MutexCalls numalloc_mutex_calls{numalloc_libc_mutex_init, numalloc_libc_mutex_lock,
                                                    numalloc_libc_mutex_trylock, numalloc_libc_mutex_unlock};
}
