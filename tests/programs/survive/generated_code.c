// Code that is made at run time, and whose unwind table says nothing of where its caller's frame is, as LuaJIT's:
// libgcc's unwinder ends a program that it takes through such a frame. The heap profile and guarded sampling take
// stacks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
int main(void) {
    puts("the code is x86-64's");
    return 77;
}
#else
void __register_frame(void* table);

// A common part without rules, one function, and the end.
static struct __attribute__((packed)) {
    unsigned length;
    unsigned id;
    unsigned char version, augmentation, code_alignment, data_alignment, return_register, rules[3];
    unsigned function_length;
    unsigned common;  // bytes back to `id`'s word of length
    void* begin;
    size_t bytes;
    unsigned end;
} table = {.length = 12,
           .version = 1,
           .code_alignment = 1,
           .data_alignment = 0x78,
           .return_register = 16,
           .function_length = 20,
           .common = 20};

static void work(void) {
    for (int i = 0; i < 300000; ++i) free(malloc(i % 1000 + 1));
}

int main(void) {
    // sub $8,%rsp; call *%rdi; add $8,%rsp; ret
    static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
    void* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    table.begin = page;
    table.bytes = sizeof code;
    __register_frame(&table);
    ((void (*)(void (*)(void)))page)(work);
    puts("allocated beneath generated code");
    return 0;
}
#endif
