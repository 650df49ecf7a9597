// A free object has a mark, which its address and a secret give. A compiler may fill what a program leaves undefined
// with whatever a register or the stack below holds. So no function may leave there the mark of an object that it
// returns or frees: the program could write it to its place in the object, and the next free would look like a second
// one. With Rust's enums without payload that ended cargo.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "c_check.h"

enum { BLOCKS = 3000, ROUNDS = 60, PLACES = 1 << 20, REGISTERS = 41, BELOW = 1024 };

// What a call left: the registers that it need not preserve, and the stack below the caller's frame.
__attribute__((used)) static uint64_t left[REGISTERS + BELOW];

// Calls function(a, b) and copies what it left.
void* call_and_copy(void* function, uintptr_t a, uintptr_t b);
__asm__(
    ".text\n"
    "call_and_copy:\n\t"
    "push %rbx\n\tmov %rdi, %rax\n\tmov %rsi, %rdi\n\tmov %rdx, %rsi\n\t"
    "call *%rax\n\t"
    "lea left(%rip), %rbx\n\t"
    "mov %rcx, (%rbx)\n\tmov %rdx, 8(%rbx)\n\tmov %rsi, 16(%rbx)\n\tmov %rdi, 24(%rbx)\n\t"
    "mov %r8, 32(%rbx)\n\tmov %r9, 40(%rbx)\n\tmov %r10, 48(%rbx)\n\tmov %r11, 56(%rbx)\n\t"
    "movups %xmm0, 64(%rbx)\n\tmovups %xmm1, 80(%rbx)\n\tmovups %xmm2, 96(%rbx)\n\tmovups %xmm3, 112(%rbx)\n\t"
    "movups %xmm4, 128(%rbx)\n\tmovups %xmm5, 144(%rbx)\n\tmovups %xmm6, 160(%rbx)\n\tmovups %xmm7, 176(%rbx)\n\t"
    "movups %xmm8, 192(%rbx)\n\tmovups %xmm9, 208(%rbx)\n\tmovups %xmm10, 224(%rbx)\n\tmovups %xmm11, 240(%rbx)\n\t"
    "movups %xmm12, 256(%rbx)\n\tmovups %xmm13, 272(%rbx)\n\tmovups %xmm14, 288(%rbx)\n\tmovups %xmm15, 304(%rbx)\n\t"
    "mov %rax, 320(%rbx)\n\tlea 328(%rbx), %rdi\n\tlea -8192(%rsp), %rsi\n\tmov $1024, %ecx\n\trep movsq\n\t"
    "pop %rbx\n\tret");

// A mark is kept and compared as this, so that the test itself leaves none.
static uint64_t hidden(uint64_t word) { return word * 0x9E3779B97F4A7C15; }

// The mark of each object that was free once, by its address.
static struct {
    void* object;
    uint64_t hidden_mark;
} known[PLACES];
static uint64_t* mark_of(void* object) {
    size_t i = (uintptr_t)object / 16 * 0x9E3779B97F4A7C15 >> 44;
    while (known[i].object != NULL && known[i].object != object) i = (i + 1) % PLACES;
    known[i].object = object;
    return &known[i].hidden_mark;
}

static unsigned long checks;
static void check(const char* name, void* object, size_t size) {
    const uint64_t mark = *mark_of(object);
    if (mark == 0) return;
    ++checks;
    for (int i = 0; i < REGISTERS + BELOW; ++i) {
        if (hidden(left[i]) != mark) continue;
        dprintf(2, "%s of %zu bytes left the mark in %s %d\n", name, size, i < REGISTERS ? "register" : "stack word",
                i < REGISTERS ? i : i - REGISTERS);
        _exit(1);
    }
}
// An object that a call freed. 0: it is in no list any more, and has no mark.
static void freed(const char* name, void* object, size_t size) {
    const uint64_t mark = hidden(((volatile uint64_t*)object)[1]);
    *mark_of(object) = mark;
    check(name, object, size);
}

static struct {
    void* p;
    size_t size;
    uint32_t taker;
} block[BLOCKS];
static uint32_t seed = 1;
static uint32_t below(uint32_t n) { return (uint32_t)((seed = seed * 1664525 + 1013904223) >> 8) % n; }
static size_t any_size(void) { return 16 + below(16u << below(12)); }

// Which may follow which: the hardened library ends a program that frees with another family's function.
enum { MALLOCS = 4, TAKERS = 6 };
static const char* const takers[TAKERS] = {"malloc", "calloc", "aligned_alloc", "realloc", "_Znwm", "_Znam"};
static const char* const givers[TAKERS] = {"free", "realloc", "free", "realloc", "_ZdlPv", "_ZdaPv"};

static void take(int i) {
    const char* const name = takers[block[i].taker = below(TAKERS)];
    const size_t size = block[i].size = any_size();
    const uintptr_t first = name[0] == 'c' ? 1 : name[0] == 'a' ? 16u << below(3) : name[0] == 'r' ? 0 : size;
    void* const p = block[i].p = call_and_copy(dlsym(RTLD_DEFAULT, name), first, size);
    CHECK(p != NULL);
    check(name, p, size);
}
static void give(int i) {
    const char* name = givers[block[i].taker];
    size_t size = 0;
    if (name[0] == '_' && below(2) == 0) {
        name = block[i].taker == MALLOCS ? "_ZdlPvm" : "_ZdaPvm";
        size = block[i].size;
    }
    call_and_copy(dlsym(RTLD_DEFAULT, name), (uintptr_t)block[i].p, size);
    freed(name, block[i].p, block[i].size);
    block[i].p = NULL;
}
static void resize(int i) {
    void* const before = block[i].p;
    const size_t size = any_size();
    void* const p = block[i].p = call_and_copy(dlsym(RTLD_DEFAULT, "realloc"), (uintptr_t)before, size);
    CHECK(p != NULL);
    check("realloc", p, size);
    if (p != before) freed("realloc", before, block[i].size);
    block[i].size = size;
    call_and_copy(dlsym(RTLD_DEFAULT, "malloc_usable_size"), (uintptr_t)p, 0);
    check("malloc_usable_size", p, size);
}

static void* work(void* unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; ++round) {
        for (int n = 0; n < BLOCKS; ++n) {
            const int i = (int)below(BLOCKS);
            if (block[i].p == NULL) take(i);
            else if (below(4) == 0 && block[i].taker < MALLOCS) resize(i);
            else give(i);
        }
        if (round % 8 == 7)
            for (int i = 0; i < BLOCKS; ++i)
                if (block[i].p != NULL) give(i);
    }
    return NULL;
}

int main(void) {
    work(NULL);
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(checks > 100 * BLOCKS);
    dprintf(1, "no call leaves a mark behind\n");
    return 0;
}
