// Interposed: dlopen and dlmopen. A program that looks up free in what it opened (Python's ctypes, Java's and .NET's
// foreign functions) searches this library and its dependencies, not the program, and would find libc's free beside
// numalloc's malloc. So would a library that is opened with RTLD_DEEPBIND.
//
// libc takes $ORIGIN, RUNPATH and the namespace from its caller. So this code does not call the next function: a helper
// returns its address and the mode, and the code jumps there with the caller's return address.
#include <cstdlib>

#include <dlfcn.h>

#include "api/export.h"
#include "api/interpose/jump.h"
#include "api/interpose/libc_symbols.h"
#include "api/interpose/next.h"
#include "api/malloc/initialise.h"
#include "heap/node/locate.h"
#include "options/options.h"
#include "os/filter.h"

namespace numalloc::api {

namespace {

// Whether malloc is numalloc's. If another allocator precedes it (the program's own, say), the mode stays as it is
// without numalloc.
bool malloc_is_ours() {
    void* p = std::malloc(1);
    __asm__ volatile("" : "+r"(p) : : "memory");
    const bool ours = p == nullptr || locate(p).found != Found::foreign;
    std::free(p);
    return ours;
}

long mode_to_use(int mode) {
    if (!malloc_is_ours() || options().deepbind == DeepBind::keep) return mode;
    // Nothing optional is asked of the kernel after a filter. For RTLD_DEEPBIND it is not optional.
    if ((mode & RTLD_DEEPBIND) == 0 && os::filtered()) return mode;
    if (options().deepbind == DeepBind::share && libc_symbols_lead_to_ours()) return mode;
    return mode & ~RTLD_DEEPBIND;
}

}  // namespace

// Returned in two registers, on which the jumps below rely.
struct Jump {
    void* to;
    long mode;
};

}  // namespace numalloc::api

using namespace numalloc::api;

extern "C" {

__attribute__((used)) Jump numalloc_before_dlopen(const char*, int mode) {
    return {reinterpret_cast<void*>(NUMALLOC_NEXT(dlopen)), mode_to_use(mode)};
}

// Another namespace has a libc and a malloc of its own, without numalloc.
__attribute__((used)) Jump numalloc_before_dlmopen(Lmid_t name_space, const char*, int mode) {
    return {reinterpret_cast<void*>(NUMALLOC_NEXT(dlmopen)), name_space == LM_ID_BASE ? mode_to_use(mode) : mode};
}

}  // extern "C"

#if defined(__x86_64__)
NUMALLOC_FUNCTION(dlopen,
                  "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
                  "mov %rdi, (%rsp)\n"
                  "call numalloc_before_dlopen\n"
                  "mov (%rsp), %rdi\n"
                  "mov %edx, %esi\n"
                  "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"
                  "jmp *%rax");
NUMALLOC_FUNCTION(dlmopen,
                  "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
                  "mov %rdi, (%rsp)\n"
                  "mov %rsi, 8(%rsp)\n"
                  "call numalloc_before_dlmopen\n"
                  "mov (%rsp), %rdi\n"
                  "mov 8(%rsp), %rsi\n"
                  "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"
                  "jmp *%rax");
#elif defined(__aarch64__)
#define NUMALLOC_SAVE                                                                                                \
    "stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\nstp x0, x1, [sp, " \
    "#16]\n"
#define NUMALLOC_RESTORE "ldp x29, x30, [sp], #32\n.cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\n"
NUMALLOC_FUNCTION(dlopen, NUMALLOC_SAVE
                  "bl numalloc_before_dlopen\n"
                  "mov x16, x0\n"
                  "ldr x0, [sp, #16]\n" NUMALLOC_RESTORE "br x16");
NUMALLOC_FUNCTION(dlmopen, NUMALLOC_SAVE
                  "bl numalloc_before_dlmopen\n"
                  "mov x16, x0\n"
                  "mov w2, w1\n"
                  "ldp x0, x1, [sp, #16]\n" NUMALLOC_RESTORE "br x16");
#else
#error "numalloc knows x86-64 and aarch64"
#endif
