// A library that replaces functions of mutexes and allocates in them under a lock of its own, as lock profilers do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static int (*libc_lock)(pthread_mutex_t*), (*libc_trylock)(pthread_mutex_t*), (*libc_unlock)(pthread_mutex_t*);
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside __attribute__((tls_model("initial-exec")));

int own_mutexes_seen;

static __attribute__((constructor)) void find_libc(void) {
    libc_lock = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    libc_trylock = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    libc_unlock = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
}

static void note(void) {
    static void* volatile kept;
    if (inside) return;
    inside = 1;
    libc_lock(&own);
    ++own_mutexes_seen;
    for (int i = 0; i < 20; ++i) {
        void* const p = malloc((size_t)(10 + i * 100));
        free(kept);
        kept = p;
    }
    libc_unlock(&own);
    inside = 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
    if (libc_lock == NULL) find_libc();
    note();
    return libc_lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
    if (libc_lock == NULL) find_libc();
    note();
    return libc_trylock(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
    if (libc_lock == NULL) find_libc();
    note();
    return libc_unlock(mutex);
}
