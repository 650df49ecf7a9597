// guarded NAME: a program with one bug in a guarded object, or none. It prints what it expects of itself, if it gets so
// far.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" __attribute__((weak)) int numalloc_node_of(const void*) noexcept;
extern "C" __attribute__((weak)) void* numalloc_aligned_alloc_on_node(std::size_t, std::size_t, int) noexcept;

namespace {

constexpr std::size_t page = 4096;

template <class T>
T* hide(T* p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}

__attribute__((noinline)) char* made_here(std::size_t n) {
    char* const p = hide(static_cast<char*>(std::malloc(n)));
    if (p == nullptr) std::abort();
    return p;
}
__attribute__((noinline)) void freed_here(char* p) { std::free(hide(p)); }

bool may_be_read(std::uintptr_t a) { return access(reinterpret_cast<const char*>(a), F_OK) == 0 || errno != EFAULT; }
bool is_guarded(const char* p) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p) / page * page;
    return !may_be_read(begin - 1) && !may_be_read(begin + page);
}

// Chance decides on which side of an object the guard page is near.
char* at_edge(bool right) {
    for (int i = 0; i < 100; ++i) {
        char* const p = made_here(64);
        const auto a = reinterpret_cast<std::uintptr_t>(p);
        if ((right ? a + 64 : a) % page == 0) return p;
        freed_here(p);
    }
    std::puts("no such object");
    std::exit(3);
}

void touch(char* p, bool write) {
    volatile char* const at = hide(p);
    if (write) *at = 1;
    else (void)*at;
}

void must(bool right, const char* what) {
    if (right) return;
    std::printf("not so: %s\n", what);
    std::exit(3);
}

void whole() {
    for (std::size_t n : {0UL, 1UL, 15UL, 16UL, 17UL, 100UL, 1024UL, 4095UL, 4096UL, 4097UL, 40000UL}) {
        for (int i = 0; i < 20; ++i) {
            char* p = made_here(n);
            must(malloc_usable_size(p) >= n, "the usable size");
            must(reinterpret_cast<std::uintptr_t>(p) % 16 == 0, "malloc's alignment");
            std::memset(p, i, n);
            p = static_cast<char*>(std::realloc(p, 2 * n + 1));
            for (std::size_t k = 0; k < n; ++k) must(p[k] == static_cast<char>(i), "what realloc keeps");
            std::memset(p, i, 2 * n + 1);
            p = static_cast<char*>(std::realloc(p, n / 2 + 1));
            for (std::size_t k = 0; k < n / 2; ++k)
                must(p[k] == static_cast<char>(i), "what realloc keeps of a larger one");
            if (numalloc_node_of != nullptr) must(numalloc_node_of(p) >= 0, "the node");
            std::free(p);
            char* const z = static_cast<char*>(std::calloc(1, n));
            for (std::size_t k = 0; k < n; ++k) must(z[k] == 0, "calloc's zeros");
            std::free(z);
        }
    }
    for (std::size_t alignment = 16; alignment <= 4 * page; alignment *= 2) {
        void* p = nullptr;
        must(posix_memalign(&p, alignment, 48) == 0, "posix_memalign");
        must(reinterpret_cast<std::uintptr_t>(p) % alignment == 0, "the alignment");
        std::memset(p, 1, 48);
        std::free(p);
        // As often on the left of its page as on the right, where 48 bytes less than a page are no alignment above 16.
        for (int i = 0; i < 16; ++i) {
            p = numalloc_aligned_alloc_on_node(alignment, 48, 0);
            must(p != nullptr && reinterpret_cast<std::uintptr_t>(p) % alignment == 0, "the alignment on a node");
            std::memset(p, 1, 48);
            std::free(p);
        }
    }
    must(is_guarded(made_here(64)), "each is guarded");
}

// More than there are slots, so that ordinary ones are among them.
void threads() {
    std::vector<std::thread> all;
    for (int t = 0; t < 4; ++t)
        all.emplace_back([t] {
            std::vector<char*> mine;
            for (int i = 0; i < 3000; ++i) {
                mine.push_back(made_here(static_cast<std::size_t>(16 + i % 900)));
                std::memset(mine.back(), t, static_cast<std::size_t>(16 + i % 900));
                if (i % 3 != 0 || mine.size() > 200) {
                    freed_here(mine.front());
                    mine.erase(mine.begin());
                }
            }
            for (char* p : mine) freed_here(p);
        });
    for (auto& one : all) one.join();
}

void forked() {
    char* const p = made_here(64);
    std::memset(p, 7, 64);
    const pid_t child = fork();
    if (child == 0) {
        must(p[63] == 7, "what the child sees");
        freed_here(p);
        for (int i = 0; i < 100; ++i) freed_here(made_here(64));
        touch(p, true);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "the child ends by its use after free");
    p[0] = 8;
    freed_here(p);
}

void on_segv(int) {
    static const char said[] = "own handler\n";
    (void)!write(1, said, sizeof said - 1);
    _exit(0);
}

// A collector's write barrier.
char* protected_page = nullptr;
void on_write(int) { mprotect(protected_page, page, PROT_READ | PROT_WRITE); }
void barrier() {
    protected_page = static_cast<char*>(hide(std::aligned_alloc(page, page)));
    touch(protected_page, true);
    must(mprotect(protected_page, page, PROT_READ) == 0, "a block's page is protected");
    touch(protected_page + 5, true);
    std::free(protected_page);
}

// Before the first malloc, so the library keeps this handler and calls it for what is none of its business.
void install_early(int argc, char** argv, char**) {
    if (argc > 1 && std::strcmp(argv[1], "barrier") == 0) std::signal(SIGSEGV, on_write);
}
__attribute__((section(".preinit_array"), used)) void (*const early)(int, char**, char**) = install_early;

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
    if (is("whole")) whole();
    else if (is("threads")) threads();
    else if (is("forked")) forked();
    else if (is("barrier")) barrier();
    else if (is("overflow_write")) touch(at_edge(true) + 64, true);
    else if (is("overflow_read")) touch(at_edge(true) + 64, false);
    else if (is("underflow_write")) touch(at_edge(false) - 1, true);
    else if (is("underflow_read")) touch(at_edge(false) - 1, false);
    else if (is("freed_write") || is("freed_read")) {
        char* const p = made_here(64);
        freed_here(p);
        touch(p + 8, is("freed_write"));
    } else if (is("double_free")) {
        char* const p = made_here(64);
        freed_here(p);
        freed_here(p);
    } else if (is("inside_free")) freed_here(made_here(64) + 16);
    else if (is("beside")) {
        char* const p = at_edge(false);
        touch(p + 64, true);
        freed_here(p);
    } else if (is("odd_overflow")) {
        char* const p = made_here(61);
        p[61] = '\0';
        freed_here(p);
    } else if (is("reused_late")) {
        char* const p = made_here(64);
        freed_here(p);
        for (int i = 0; i < 200; ++i) must(made_here(64) != p, "the slot is reused late");
    } else if (is("foreign_fault") || is("own_handler")) {
        freed_here(made_here(64));
        if (is("own_handler")) std::signal(SIGSEGV, on_segv);
        void* const p = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        touch(static_cast<char*>(p), true);
    } else if (is("sampled")) {
        // Batches only: what is freed joins a list and is not counted.
        int guarded = 0;
        std::vector<char*> all(200000);
        for (char*& p : all) guarded += is_guarded(p = made_here(1040)) ? 1 : 0;
        std::printf("%d guarded\n", guarded);
        return 0;
    } else return 2;
    std::puts("done");
    return 0;
}
