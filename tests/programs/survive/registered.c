// Programs with registered memory must see every call that removes or moves pages (src/os/libc_call.h).
//
//   calls   a seccomp filter kills the process at such a system call outside of libc's code
//   hooks   a preloaded library replaces libc's functions, and allocates and frees in each of them
#define _GNU_SOURCE
#include "c_check.h"
#include "registered.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { blocks = 300, threads = 3 };
// Fewer with hooks, which are slow.
static int rounds = 30;

static unsigned draw(unsigned* seed) { return (*seed = *seed * 1103515245U + 12345U) >> 8; }

static size_t draw_size(unsigned* seed) {
    const unsigned die = draw(seed) % 100;
    return die < 60 ? draw(seed) % 2000 + 1 : die < 90 ? draw(seed) % 100000 + 1 : die < 99 ? draw(seed) % 3000000 + 1 : draw(seed) % 60000000 + 1;
}

static void fill(char* p, size_t n, char with) {
    for (size_t at = 0; at < n; at += 4096) p[at] = with;
    p[n - 1] = with;
}
static void check(const char* p, size_t n, char with) {
    for (size_t at = 0; at < n; at += 4096) CHECK(p[at] == with);
    CHECK(p[n - 1] == with);
}

// Allocates, grows, clears and frees blocks of all sizes, so that the heap removes pages, moves them and breaks huge pages up.
static void* work(void* number) {
    static __thread struct { char* p; size_t n; char with; } block[blocks];
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < blocks; ++i) {
            if (block[i].p != NULL) {
                check(block[i].p, block[i].n, block[i].with);
                if (draw(&seed) % 3 != 0) {
                    errno = 4711;
                    free(block[i].p);
                    CHECK(errno == 4711);
                    block[i].p = NULL;
                } else {
                    const size_t n = block[i].n + block[i].n / 2 + 1;
                    block[i].p = realloc(block[i].p, n);
                    CHECK(block[i].p != NULL && block[i].p[0] == block[i].with);
                    block[i].n = n > 200000000 ? 1 : n;
                    fill(block[i].p, block[i].n, block[i].with);
                }
            } else {
                const size_t n = draw_size(&seed);
                char* p = draw(&seed) % 4 == 0 ? calloc(1, n) : malloc(n);
                CHECK(p != NULL);
                block[i].p = p;
                block[i].n = n;
                block[i].with = (char)(i + round + 1);
                fill(p, n, block[i].with);
            }
        }
        if (round % 7 == 6) malloc_trim(0);
    }
    for (int i = 0; i < blocks; ++i) free(block[i].p);
    return number;
}

// calloc returns zeros from fresh, reused and purged pages.
static void clear_again(void) {
    for (int i = 0; i < 20; ++i) {
        const size_t n = (size_t)(i % 5 + 1) << 22;
        char* p = calloc(1, n);
        CHECK(p != NULL);
        for (size_t at = 0; at < n; at += 512) CHECK(p[at] == 0);
        memset(p, 1, n);
        free(p);
        if (i % 6 == 5) malloc_trim(0);
    }
}

static void work_all(void) {
    pthread_t thread[threads];
    for (int i = 0; i < threads; ++i) CHECK(pthread_create(&thread[i], NULL, work, (void*)(uintptr_t)(i + 2)) == 0);
    work((void*)1);
    for (int i = 0; i < threads; ++i) CHECK(pthread_join(thread[i], NULL) == 0);
    clear_again();
    malloc_trim(0);
}

static uintptr_t code_begin, code_end;

static int find_code(struct dl_phdr_info* object, size_t bytes, void* in_libc) {
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || (uintptr_t)in_libc - begin >= part->p_memsz) continue;
        code_begin = begin;
        code_end = begin + part->p_memsz;
        return 1;
    }
    return 0;
}

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define LOW(argument) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (argument))
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define IF_BITS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)

static int filter_calls(void) {
    struct sock_filter filter[] = {
        LOAD(nr),
        IF_EQUAL(SYS_munmap, 12, 0),
        IF_EQUAL(SYS_mremap, 3, 0),
        IF_EQUAL(SYS_madvise, 4, 0),
        IF_EQUAL(SYS_mmap, 7, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        LOW(3), IF_BITS(MREMAP_MAYMOVE, 6, 12),
        LOW(2), IF_EQUAL(MADV_DONTNEED, 4, 0), IF_EQUAL(MADV_FREE, 3, 0), IF_EQUAL(MADV_REMOVE, 2, 8),
        LOW(3), IF_BITS(MAP_FIXED, 0, 6),
        // libc's code does not cross a multiple of 4 GiB.
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        IF_EQUAL((uint32_t)(code_begin >> 32), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)code_begin, 0, 1),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)code_end, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
        rounds = 8;
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
