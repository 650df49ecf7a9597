// One misuse a run: misuse CASE. Prints "CALL ADDRESS" of the wrong call on stdout and makes it.
// The library must end the program there, or by the time it next handles the block; "survived"
// on stdout means that it did not notice.
#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <thread>

#include "check.h"

namespace {

// Kept from the compiler, which knows these calls to be wrong.
void* hide(void* p) {
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}
char* hide(char* p) { return static_cast<char*>(hide(static_cast<void*>(p))); }

// By write: stdio would be lost with the abort.
void announce(const char* call, const void* p) {
    char text[100];
    const int n = std::snprintf(text, sizeof text, "%s 0x%lx\n", call, reinterpret_cast<unsigned long>(p));
    CHECK(write(1, text, static_cast<std::size_t>(n)) == n);
}

void wrong_free(void* p) {
    p = hide(p);
    announce("free", p);
    free(p);
}

void wrong_realloc(void* p, std::size_t n) {
    p = hide(p);
    announce("realloc", p);
    void* q = hide(realloc(p, n));
    (void)q;
}

// The life of a program goes on: a late check may still see it.
void go_on() {
    for (std::size_t size : {std::size_t{64}, std::size_t{5000}, std::size_t{100000}, std::size_t{2000000}}) {
        void* blocks[200];
        for (int round = 0; round < 20; ++round) {
            const int count = size > 100000 ? 4 : 200;
            for (int i = 0; i < count; ++i) blocks[i] = hide(malloc(size));
            for (int i = 0; i < count; ++i) free(blocks[i]);
        }
    }
    malloc_trim(0);
}

// Past the first frees of a thread, which are all looked at.
void trust() {
    for (int i = 0; i < 2000; ++i) free(hide(malloc(64)));
}

alignas(64) char global_bytes[256];

struct Case { const char* name; void (*run)(); };

const Case cases[] = {
    {"free_stack", [] { alignas(64) char bytes[128]; wrong_free(bytes + 64); }},
    {"free_global", [] { wrong_free(global_bytes + 64); }},
    {"free_code", [] { wrong_free(reinterpret_cast<void*>(&announce)); }},
    {"free_foreign_mmap", [] { wrong_free(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"free_foreign_readonly", [] { wrong_free(mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"free_foreign_none", [] { wrong_free(mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"free_small_number", [] { wrong_free(reinterpret_cast<void*>(64)); }},
    {"free_kernel_address", [] { wrong_free(reinterpret_cast<void*>(0xffff888000001000)); }},
    {"free_non_canonical", [] { wrong_free(reinterpret_cast<void*>(0x0080000000001000)); }},
    {"free_never_allocated", [] { wrong_free(hide(static_cast<char*>(malloc(64))) + (std::size_t{256} << 20)); }},
    {"free_misaligned", [] { wrong_free(hide(static_cast<char*>(malloc(64))) + 1); }},
    {"free_half_a_word", [] { wrong_free(hide(static_cast<char*>(malloc(64))) + 8); }},
    {"free_inside_64", [] { wrong_free(hide(static_cast<char*>(malloc(64))) + 16); }},
    {"free_inside_1000", [] { wrong_free(hide(static_cast<char*>(malloc(1000))) + 512); }},
    {"free_inside_20000", [] { wrong_free(hide(static_cast<char*>(malloc(20000))) + 4096); }},
    {"free_inside_200000", [] { wrong_free(hide(static_cast<char*>(malloc(200000))) + 65536); }},
    {"free_inside_big", [] { wrong_free(hide(static_cast<char*>(malloc(3 << 20))) + 4096); }},
    {"free_inside_big_bag", [] { wrong_free(hide(static_cast<char*>(malloc(3 << 20))) + (1 << 20)); }},
    {"free_inside_by_a_thread", [] {
         char* p = hide(static_cast<char*>(malloc(64)));
         std::thread([p] { wrong_free(p + 16); go_on(); }).join();
     }},
    {"later_misaligned", [] { trust(); wrong_free(hide(static_cast<char*>(malloc(64))) + 8); }},
    {"later_inside_64", [] { trust(); wrong_free(hide(static_cast<char*>(malloc(64))) + 16); }},
    {"later_inside_1000", [] { trust(); wrong_free(hide(static_cast<char*>(malloc(1000))) + 512); }},
    {"later_inside_5000", [] { trust(); wrong_free(hide(static_cast<char*>(malloc(5000))) + 1024); }},
    {"later_inside_at_the_end_of_a_thread", [] {
         std::thread([] { trust(); wrong_free(hide(static_cast<char*>(malloc(64))) + 16); }).join();
     }},
    {"later_write_after_free", [] {
         trust();
         void* blocks[300];
         for (void*& b : blocks) b = hide(malloc(48));
         for (void* b : blocks) free(b);
         // In the middle of a list that no malloc takes from again.
         announce("memory at", blocks[150]);
         *static_cast<std::uintptr_t*>(hide(blocks[150])) = 0x4141414141414141;
     }},
    {"double_later_64", [] { trust(); void* p = hide(malloc(64)); free(p); wrong_free(p); }},
    {"double_later_with_others_between", [] {
         trust();
         void* p[4];
         for (void*& q : p) q = hide(malloc(200));
         for (void* q : p) free(q);
         wrong_free(p[1]);
     }},
    {"double_later_1000", [] { trust(); void* p = hide(malloc(1000)); free(p); wrong_free(p); }},
    {"double_16", [] { void* p = hide(malloc(16)); free(p); wrong_free(p); }},
    {"double_64", [] { void* p = hide(malloc(64)); free(p); wrong_free(p); }},
    {"double_5000", [] { void* p = hide(malloc(5000)); free(p); wrong_free(p); }},
    {"double_200000", [] { void* p = hide(malloc(200000)); free(p); wrong_free(p); }},
    {"double_big", [] { void* p = hide(malloc(3 << 20)); free(p); wrong_free(p); }},
    {"double_huge", [] { void* p = hide(malloc(100 << 20)); free(p); wrong_free(p); }},
    {"realloc_stack", [] { alignas(64) char bytes[128]; wrong_realloc(bytes + 64, 1000); }},
    {"realloc_foreign", [] { wrong_realloc(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 5000); }},
    {"realloc_inside", [] { wrong_realloc(hide(static_cast<char*>(malloc(1000))) + 512, 5000); }},
    {"realloc_inside_big", [] { wrong_realloc(hide(static_cast<char*>(malloc(3 << 20))) + 4096, 5000); }},
    {"realloc_freed_big", [] { void* p = hide(malloc(3 << 20)); free(p); wrong_realloc(p, 100); }},
    {"reallocarray_stack", [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("reallocarray", p);
         p = hide(reallocarray(p, 10, 10));
     }},
    {"usable_size_stack", [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("malloc_usable_size", p);
         volatile std::size_t n = malloc_usable_size(p);
         (void)n;
     }},
    {"delete_stack", [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("operator delete", p);
         ::operator delete(p);
     }},
    {"delete_array_sized_stack", [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("operator delete[]", p);
         ::operator delete[](p, std::size_t{64});
     }},
    {"delete_twice", [] {
         void* p = hide(::operator new(64));
         ::operator delete(p);
         p = hide(p);
         announce("operator delete", p);
         ::operator delete(p);
     }},
    {"free_sized_stack", [] {
         auto free_sized = reinterpret_cast<void (*)(void*, std::size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
         CHECK(free_sized != nullptr);
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("free_sized", p);
         free_sized(p, 64);
     }},
};

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    if (argc < 2) {
        for (const Case& c : cases) std::puts(c.name);
        return 0;
    }
    for (const Case& c : cases) {
        if (std::strcmp(c.name, argv[1]) != 0) continue;
        free(hide(malloc(100)));
        c.run();
        go_on();
        CHECK(write(1, "survived\n", 9) == 9);
        return 0;
    }
    std::fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
