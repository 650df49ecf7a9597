// What the tests in C need for filters of system calls.
#pragma once

#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static uintptr_t code_begin, code_end;

// For dl_iterate_phdr: sets them to the part of a program or library that `address` lies in.
__attribute__((unused)) static int find_code(struct dl_phdr_info* object, size_t bytes, void* address) {
    (void)bytes;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || (uintptr_t)address - begin >= part->p_memsz) continue;
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
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define LOAD_ADDRESS_HIGH BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4)
#define LOAD_ADDRESS_LOW BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer))
#define IF_FROM(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, yes, no)
