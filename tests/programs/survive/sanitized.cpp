// A program to be built with a sanitizer: every way to memory, threads and children; with an argument, one fault that
// the sanitizer is to find. See sanitized.sh.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

void fail(int line) {
    std::fprintf(stderr, "%s:%d\n", __FILE__, line);
    _exit(1);
}
#define REQUIRE(condition) ((condition) ? void() : fail(__LINE__))

constexpr std::size_t sizes[] = {0, 1, 3, 100, 5000, 100000, 300000};

void c_functions() {
    for (std::size_t n : sizes) {
        char* p = static_cast<char*>(std::malloc(n));
        std::memset(p, 1, n);
        // A sanitizer's blocks have the size that was asked for, ours that of a class.
        REQUIRE(malloc_usable_size(p) == n || n == 0);
        p = static_cast<char*>(std::realloc(p, n + 10));
        p = static_cast<char*>(reallocarray(p, n + 20, 2));
        std::free(p);
        char* zero = static_cast<char*>(std::calloc(n, 1));
        for (std::size_t i = 0; i < n; ++i) REQUIRE(zero[i] == 0);
        std::free(zero);
        void* aligned = nullptr;
        REQUIRE(posix_memalign(&aligned, 256, n) == 0 && reinterpret_cast<std::size_t>(aligned) % 256 == 0);
        std::free(aligned);
        std::free(aligned_alloc(64, 64 * (n + 1)));
        std::free(memalign(128, n));
        std::free(strdup("text"));
    }
    std::free(std::realloc(nullptr, 10));
    // Numalloc's own, where it is loaded: any size.
    using AlignedOnNode = void* (*)(std::size_t alignment, std::size_t bytes, int node);
    if (void* const symbol = dlsym(RTLD_DEFAULT, "numalloc_aligned_alloc_on_node"); symbol != nullptr)
        std::free(reinterpret_cast<AlignedOnNode>(symbol)(64, 100, 0));
    malloc_trim(0);
    mallinfo2();
}

void operators() {
    struct alignas(128) Wide {
        char c[200];
    };
    delete new int(1);
    delete[] new int[1000];
    delete new Wide;
    delete[] new (std::nothrow) char[100];
    ::operator delete(::operator new(50), std::size_t{50});
}

void* work(void* argument) {
    c_functions();
    operators();
    return argument;
}

// Of the library's own calls, where it is there.
template <class F>
F find(const char* name) {
    return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}
void own_calls() {
    const auto on_node = find<void* (*)(std::size_t, int)>("numalloc_malloc_on_node");
    if (on_node == nullptr) return;
    void* p = on_node(100, 0);
    REQUIRE(p != nullptr && malloc_usable_size(p) == 100);
    p = find<void* (*)(void*, std::size_t, int)>("numalloc_realloc_on_node")(p, 200, 0);
    REQUIRE(p != nullptr && malloc_usable_size(p) == 200);
    std::free(p);
    p = find<void* (*)(std::size_t, int)>("psm_alloc")(300, 0);
    p = find<void* (*)(void*, std::size_t)>("psm_realloc")(p, 400);
    REQUIRE(p != nullptr && malloc_usable_size(p) == 400);
    find<void (*)(void*)>("psm_free")(p);
    std::free(find<void* (*)(std::size_t, std::size_t)>("numalloc_calloc_interleaved")(10, 10));
    std::free(find<void* (*)(std::size_t, std::size_t, int)>("numalloc_aligned_alloc_on_node")(64, 128, 0));
    errno = 0;
    REQUIRE(find<void* (*)(int)>("numalloc_heap_create")(0) == nullptr && errno == ENOMEM);
    REQUIRE(find<int (*)()>("numalloc_node_count")() >= 1);
}

}  // namespace

char* volatile kept;

int main(int argc, char**) {
    work(nullptr);
    own_calls();
    pthread_t threads[4];
    for (pthread_t& t : threads) REQUIRE(pthread_create(&t, nullptr, work, nullptr) == 0);
    for (pthread_t& t : threads) pthread_join(t, nullptr);
    cpu_set_t cpus;
    REQUIRE(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    const pid_t child = fork();
    if (child == 0) {
        c_functions();
        _exit(7);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    REQUIRE(std::system("exit 3") == 3 << 8);
    std::puts("everything ran");
    std::fflush(stdout);
    if (argc > 1) {
        kept = static_cast<char*>(std::malloc(10));
        std::memset(kept, 1, 10);
        std::free(kept);
        if (kept[3] == 2) std::puts("read");  // it is free
        kept = new char[33];
        kept = nullptr;  // a leak
    }
}
