// Functions in assembly that end by a jump to another one, which then sees the caller's arguments and return address.
#pragma once

#define NUMALLOC_FUNCTION(name, ...)                                                                         \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n.balign 16\n" #name           \
            ":\n.cfi_startproc\n" __VA_ARGS__ "\n.cfi_endproc\n.size " #name ", . - " #name "\n.popsection")
