// Programs with registered memory must see every call that removes or moves pages (src/os/libc_call.h).
//
//   calls   a seccomp filter kills the process at such a system call outside of libc's code
//   hooks   a preloaded library replaces libc's functions, and allocates and frees in each of them
#define _GNU_SOURCE
#include "registered.h"
#include "c_filter.h"
#include "c_work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

// The heap starts before the constructor of any library has run.
static void start_heap(void) { free(malloc(100)); }
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = start_heap;

static int filter_calls(void) {
    struct sock_filter filter[] = {
        LOAD(nr),
        IF_EQUAL(SYS_munmap, 12, 0),
        IF_EQUAL(SYS_mremap, 3, 0),
        IF_EQUAL(SYS_madvise, 4, 0),
        IF_EQUAL(SYS_mmap, 7, 0),
        RETURN(SECCOMP_RET_ALLOW),
        LOW(3),
        IF_BITS(MREMAP_MAYMOVE, 6, 12),
        LOW(2),
        IF_EQUAL(MADV_DONTNEED, 4, 0),
        IF_EQUAL(MADV_FREE, 3, 0),
        IF_EQUAL(MADV_REMOVE, 2, 8),
        LOW(3),
        IF_BITS(MAP_FIXED, 0, 6),
        // libc's code does not cross a multiple of 4 GiB.
        LOAD_ADDRESS_HIGH,
        IF_EQUAL((uint32_t)(code_begin >> 32), 0, 3),
        LOAD_ADDRESS_LOW,
        IF_FROM((uint32_t)code_begin, 0, 1),
        IF_FROM((uint32_t)code_end, 0, 1),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    // By libc's function: numalloc's would make numalloc do without calls that the program is to meet.
    int (*const libc_prctl)(int, ...) = (int (*)(int, ...))dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "prctl");
    return libc_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           libc_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char** argv) {
    const char* const how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "calls") == 0) {
        CHECK(dl_iterate_phdr(find_code, (void*)dlsym(RTLD_NEXT, "munmap")) == 1);
        // The next process has it at another address.
        if (code_begin >> 32 != (code_end - 1) >> 32) execv("/proc/self/exe", argv);
        if (!filter_calls()) {
            puts("no filters here");
            return 77;
        }
        work_all();
    } else if (strcmp(how, "hooks") == 0) {
        rounds = 8;  // the hooks are slow
        const unsigned long before = heard();
        work_all();
        CHECK(heard() > before);
    } else {
        fprintf(stderr, "registered calls|hooks\n");
        return 2;
    }
    puts("every call went through libc");
    return 0;
}
