// Opened by dlmopen() with a libc of its own.
#include <pthread.h>
#include <stddef.h>

// Its libc's first key. Returns whether no value is set, and one can be set and read.
int use_a_key(void) {
    static pthread_key_t key;
    static int made;
    if (!made && pthread_key_create(&key, NULL) != 0) return 0;
    made = 1;
    const int empty = pthread_getspecific(key) == NULL;
    return pthread_setspecific(key, &made) == 0 && pthread_getspecific(key) == &made && empty;
}
