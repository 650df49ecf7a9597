// Preloaded behind the allocator: a filter that kills the process at each system call from the allocator's own code but
// those that malloc and free may make (src/os/filter.h). It is installed by libc's function, so that the allocator does
// not know. With NUMALLOC_TEST_FORKS_ALLOWED also what fork() may; in a cgroup with a memory limit also what reads
// files.
#define _GNU_SOURCE
#include "c_filter.h"

#include <dlfcn.h>
#include <numalloc/numalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fail(const char* why) {
    dprintf(2, "allowed_library: %s\n", why);
    _exit(1);
}

static int has_memory_limit(void) {
    struct numalloc_process_statistics now;
    int (*const ask)(struct numalloc_process_statistics*, size_t) =
        (int (*)(struct numalloc_process_statistics*, size_t))dlsym(RTLD_DEFAULT, "numalloc_statistics_of_process");
    return ask != NULL && ask(&now, sizeof now) == 0 && now.memory_limit != 0;
}

static __attribute__((constructor)) void filter_calls(int argc, char** argv) {
    (void)argc;
    void* volatile first = malloc(1);
    free(first);
    if (dl_iterate_phdr(find_code, dlsym(RTLD_DEFAULT, "malloc")) != 1) fail("malloc's code was not found");
    // The next process has it at another address.
    if (code_begin >> 32 != (code_end - 1) >> 32) execv("/proc/self/exe", argv);
    const int forks = getenv("NUMALLOC_TEST_FORKS_ALLOWED") != NULL;
    const int limited = has_memory_limit();
    struct sock_filter filter[] = {
        LOAD_ADDRESS_HIGH,
        IF_EQUAL((uint32_t)(code_begin >> 32), 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        LOAD_ADDRESS_LOW,
        IF_FROM((uint32_t)code_begin, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        IF_FROM((uint32_t)code_end, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        LOAD(nr),
        IF_EQUAL(SYS_mmap, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_munmap, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_mremap, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_madvise, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_mprotect, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_futex, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(forks ? SYS_getpid : SYS_futex, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(limited ? SYS_openat : SYS_futex, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(limited ? SYS_read : SYS_futex, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(limited ? SYS_close : SYS_futex, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        // The program's own, by functions that the allocator replaces.
        IF_EQUAL(SYS_sched_getaffinity, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        IF_EQUAL(SYS_sched_setaffinity, 0, 1),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    int (*const libc_prctl)(int, ...) = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
    if (libc_prctl == NULL) fail("libc's prctl was not found");
    if (libc_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        libc_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}
