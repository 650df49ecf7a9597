// Interposed: dlopen and dlmopen, for RTLD_DEEPBIND. A library that is opened so looks into itself and what it
// is linked with before it looks at the program: it would find libc's malloc and free beside ours.
//
// libc asks who called it: $ORIGIN, RUNPATH and the namespace are the caller's. So nothing here calls the next
// function. A helper says where it is and which mode it gets, and then comes a jump: the return address stays.
#include <cstdlib>

#include <dlfcn.h>

#include "api/export.h"
#include "api/interpose/libc_symbols.h"
#include "api/interpose/next.h"
#include "api/malloc/initialise.h"
#include "heap/process/heap.h"
#include "options/options.h"

namespace numalloc::api {

namespace {

// Of another allocator before us (the program's own, say) the library may see as much or little as it would without us.
bool malloc_is_ours() {
    void* p = std::malloc(1);
    __asm__ volatile("" : "+r"(p) : : "memory");
    const bool ours = process_heap.contains(p);
    std::free(p);
    return ours;
}

long mode_to_use(int mode) {
    if ((mode & RTLD_DEEPBIND) == 0 || !malloc_is_ours() || options().deepbind == DeepBind::keep) return mode;
    if (options().deepbind == DeepBind::share && libc_symbols_lead_to_ours()) return mode;
    return mode & ~RTLD_DEEPBIND;
}

}  // namespace

// Returned in two registers, which the jumps below rely on.
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

// Another namespace has a libc, and so a malloc, of its own: nothing of ours is to be seen there.
__attribute__((used)) Jump numalloc_before_dlmopen(Lmid_t name_space, const char*, int mode) {
    return {reinterpret_cast<void*>(NUMALLOC_NEXT(dlmopen)), name_space == LM_ID_BASE ? mode_to_use(mode) : mode};
}

}  // extern "C"

#define NUMALLOC_FUNCTION(name, ...)                                                                         \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n.balign 16\n" #name           \
            ":\n.cfi_startproc\n" __VA_ARGS__ "\n.cfi_endproc\n.size " #name ", . - " #name "\n.popsection")

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
