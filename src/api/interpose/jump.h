// Functions in assembly that end by a jump to another one, which then sees the caller's arguments and return address.
#pragma once

// The instruction that the target of an indirect call must begin with where the kernel enforces that (BTI); else it
// does nothing.
#if defined(__aarch64__)
#define NUMALLOC_LANDING "hint #34\n"
#else
#define NUMALLOC_LANDING
#endif

#define NUMALLOC_FUNCTION(name, ...)                                                                         \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n.balign 16\n" #name           \
            ":\n.cfi_startproc\n" NUMALLOC_LANDING __VA_ARGS__ "\n.cfi_endproc\n.size " #name ", . - " #name \
            "\n.popsection")
