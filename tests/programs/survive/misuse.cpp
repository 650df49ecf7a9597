// One misuse a run: misuse CASE. Prints "CALL ADDRESS" of the wrong call on stdout and makes it.
// The library must end the program there, or by the time it next handles the block; "survived"
// on stdout means that it did not notice.
//
// misuse CASE recover: 100 times, and a handler of SIGABRT leaves each by siglongjmp(), as those of
// test frameworks do. Then the program works on: threads fork, and the children allocate.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
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

// Said after a call that must not come back.
void went_on() { CHECK(write(1, "went on\n", 8) == 8); }

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
    went_on();
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

sigjmp_buf before_misuse;

void recover(void (*misuse)()) {
    struct sigaction action{};
    action.sa_handler = [](int) { siglongjmp(before_misuse, 1); };
    CHECK(sigaction(SIGABRT, &action, nullptr) == 0);
    for (volatile int i = 0; i < 100; i = i + 1)
        if (sigsetjmp(before_misuse, 1) == 0) misuse();
    go_on();
    std::thread([] {
        go_on();
        const pid_t child = fork();
        if (child == 0) {
            go_on();
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }).join();
    go_on();
    CHECK(write(1, "recovered\n", 10) == 10);
}

// Past the first frees of a thread, whose addresses are looked at.
void trust() {
    for (int i = 0; i < 2000; ++i) free(hide(malloc(64)));
}

// A heap that has worked: a million frees of many sizes.
void warm_up() {
    static void* blocks[5000];
    for (unsigned i = 0; i < 1000000; ++i) {
        void*& b = blocks[i * 2654435761U / 256 % 5000];
        free(b);
        b = hide(malloc(i % 50 == 0 ? i * 7919U % 60000 : i * 31U % 1500));
    }
    for (void*& b : blocks) free(b);
}

// The first of many, when `count` have been freed after it.
void double_after(std::size_t size, int count) {
    static void* blocks[100000];
    for (int i = 0; i < count; ++i) blocks[i] = hide(malloc(size));
    for (int i = 0; i < count; ++i) free(blocks[i]);
    wrong_free(blocks[0]);
}

void* aim[8];

// Writes to a freed object what its list would lead to, and allocates until malloc gets there.
void overwrite_link(void* freed, void* target) {
    announce("memory at", target);
    *static_cast<void**>(hide(freed)) = target;
    for (int i = 0; i < 1000; ++i)
        if (hide(malloc(64)) == target) went_on();
}

alignas(64) char global_bytes[256];

struct Case {
    const char* name;
    void (*run)();
};

const Case cases[] = {
    {"free_stack",
     [] {
         alignas(64) char bytes[128];
         wrong_free(bytes + 64);
     }},
    {"free_global", [] { wrong_free(global_bytes + 64); }},
    {"free_code", [] { wrong_free(reinterpret_cast<void*>(&announce)); }},
    {"free_foreign_mmap",
     [] { wrong_free(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
    {"free_foreign_readonly",
     [] { wrong_free(mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }},
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
    {"free_inside_by_a_thread",
     [] {
         char* p = hide(static_cast<char*>(malloc(64)));
         std::thread([p] {
             wrong_free(p + 16);
             go_on();
         }).join();
     }},
    {"later_misaligned",
     [] {
         trust();
         wrong_free(hide(static_cast<char*>(malloc(64))) + 8);
     }},
    {"later_inside_64",
     [] {
         trust();
         wrong_free(hide(static_cast<char*>(malloc(64))) + 16);
     }},
    {"later_inside_1000",
     [] {
         trust();
         wrong_free(hide(static_cast<char*>(malloc(1000))) + 512);
     }},
    {"later_inside_5000",
     [] {
         trust();
         wrong_free(hide(static_cast<char*>(malloc(5000))) + 1024);
     }},
    {"later_inside_at_the_end_of_a_thread",
     [] {
         std::thread([] {
             trust();
             wrong_free(hide(static_cast<char*>(malloc(64))) + 16);
         }).join();
     }},
    {"later_write_after_free",
     [] {
         trust();
         void* blocks[300];
         for (void*& b : blocks) b = hide(malloc(48));
         for (void* b : blocks) free(b);
         // In the middle of a list that no malloc takes from again.
         announce("memory at", blocks[150]);
         *static_cast<std::uintptr_t*>(hide(blocks[150])) = 0x4141414141414141;
     }},
    {"double_later_64",
     [] {
         trust();
         void* p = hide(malloc(64));
         free(p);
         wrong_free(p);
     }},
    {"double_later_with_others_between",
     [] {
         trust();
         void* p[4];
         for (void*& q : p) q = hide(malloc(200));
         for (void* q : p) free(q);
         wrong_free(p[1]);
     }},
    {"double_later_1000",
     [] {
         trust();
         void* p = hide(malloc(1000));
         free(p);
         wrong_free(p);
     }},
    {"double_warm_64",
     [] {
         warm_up();
         void* p = hide(malloc(64));
         free(p);
         wrong_free(p);
     }},
    {"double_warm_30000",
     [] {
         warm_up();
         void* p = hide(malloc(30000));
         free(p);
         wrong_free(p);
     }},
    {"double_warm_with_hundred_between",
     [] {
         warm_up();
         double_after(64, 100);
     }},
    {"double_in_the_ring_or_a_bag",
     [] {
         warm_up();
         double_after(64, 20000);
     }},
    {"double_16_in_the_ring_or_a_bag", [] { double_after(16, 100000); }},
    {"double_5000_in_the_ring_or_a_bag", [] { double_after(5000, 3000); }},
    {"double_200000_in_the_ring_or_a_bag", [] { double_after(200000, 40); }},
    {"double_in_a_bag",
     [] {
         trust();
         // Every other one stays, so that the bags do.
         void* blocks[2000];
         for (void*& b : blocks) b = hide(malloc(64));
         for (int i = 0; i < 2000; i += 2) free(blocks[i]);
         malloc_trim(0);
         wrong_free(blocks[1000]);
     }},
    {"double_by_two_threads",
     [] {
         void* p = hide(malloc(64));
         std::thread([p] { free(p); }).join();
         wrong_free(p);
     }},
    {"double_by_a_new_thread",
     [] {
         warm_up();
         void* p = hide(malloc(64));
         free(p);
         std::thread([p] { wrong_free(p); }).join();
     }},
    {"double_without_a_heap",
     [] {
         // After the thread's last word to us: glibc frees it in the fourth round of destructors.
         static pthread_key_t key;
         CHECK(pthread_key_create(&key, [](void* p) {
                   static int round;
                   if (++round < 4) return static_cast<void>(pthread_setspecific(key, p));
                   free(p);
                   wrong_free(p);
               }) == 0);
         std::thread([] { pthread_setspecific(key, hide(malloc(64))); }).join();
     }},
    {"damage_link_to_a_global",
     [] {
         warm_up();
         void* p[3];
         for (void*& q : p) q = hide(malloc(64));
         for (void* q : p) free(q);
         overwrite_link(p[2], aim);
     }},
    {"damage_link_to_an_object_in_use",
     [] {
         void* p[3];
         for (void*& q : p) q = hide(malloc(64));
         void* const target = hide(malloc(64));
         for (void* q : p) free(q);
         overwrite_link(p[2], target);
     }},
    {"damage_of_zeros",
     [] {
         void* p[3];
         for (void*& q : p) q = hide(malloc(64));
         for (void* q : p) free(q);
         announce("memory at", p[1]);
         std::memset(hide(p[1]), 0, 64);
         for (int i = 0; i < 3; ++i) hide(malloc(64));
         went_on();
     }},
    {"damage_by_the_object_before",
     [] {
         char* p[40];
         for (char*& q : p) q = hide(static_cast<char*>(malloc(48)));
         for (char* q : p) CHECK(q != nullptr);
         // Two side by side: the second is freed, and the first written beyond its end.
         int i = 1;
         while (i < 39 && p[i] != p[i - 1] + 48) ++i;
         CHECK(i < 39);
         free(p[i]);
         announce("memory at", p[i]);
         std::memset(hide(p[i - 1]), 'x', 48 + 16);
         hide(malloc(48));
         went_on();
     }},
    {"double_16",
     [] {
         void* p = hide(malloc(16));
         free(p);
         wrong_free(p);
     }},
    {"double_64",
     [] {
         void* p = hide(malloc(64));
         free(p);
         wrong_free(p);
     }},
    {"double_5000",
     [] {
         void* p = hide(malloc(5000));
         free(p);
         wrong_free(p);
     }},
    {"double_200000",
     [] {
         void* p = hide(malloc(200000));
         free(p);
         wrong_free(p);
     }},
    {"double_big",
     [] {
         void* p = hide(malloc(3 << 20));
         free(p);
         wrong_free(p);
     }},
    {"double_huge",
     [] {
         void* p = hide(malloc(100 << 20));
         free(p);
         wrong_free(p);
     }},
    {"realloc_stack",
     [] {
         alignas(64) char bytes[128];
         wrong_realloc(bytes + 64, 1000);
     }},
    {"realloc_foreign",
     [] { wrong_realloc(mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 5000); }},
    {"realloc_inside", [] { wrong_realloc(hide(static_cast<char*>(malloc(1000))) + 512, 5000); }},
    {"realloc_inside_big", [] { wrong_realloc(hide(static_cast<char*>(malloc(3 << 20))) + 4096, 5000); }},
    {"realloc_freed_big",
     [] {
         void* p = hide(malloc(3 << 20));
         free(p);
         wrong_realloc(p, 100);
     }},
    {"reallocarray_stack",
     [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("realloc", p);
         p = hide(reallocarray(p, 10, 10));
     }},
    {"usable_size_stack",
     [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("malloc_usable_size", p);
         volatile std::size_t n = malloc_usable_size(p);
         (void)n;
     }},
    {"delete_stack",
     [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("operator delete", p);
         ::operator delete(p);
     }},
    {"delete_array_sized_stack",
     [] {
         alignas(64) char bytes[128];
         void* p = hide(static_cast<void*>(bytes + 64));
         announce("operator delete[]", p);
         ::operator delete[](p, std::size_t{64});
     }},
    {"delete_twice",
     [] {
         void* p = hide(::operator new(64));
         ::operator delete(p);
         p = hide(p);
         announce("operator delete", p);
         ::operator delete(p);
     }},
    {"free_sized_stack",
     [] {
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
        if (argc > 2) return recover(c.run), 0;
        c.run();
        go_on();
        CHECK(write(1, "survived\n", 9) == 9);
        return 0;
    }
    std::fprintf(stderr, "no case %s\n", argv[1]);
    return 2;
}
