// A program whose heap profile is known in advance: profiled WHAT. Each amount is allocated by a function of its own.
#include <alloca.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int count = 4000;
void* volatile sink;
std::vector<void*> kept;

#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

}  // namespace

extern "C" {

__attribute__((noinline)) void* leak_by_malloc() {
    void* p = malloc(1000);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void* leak_by_calloc() {
    void* p = calloc(10, 50);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void* leak_by_new() {
    void* p = ::operator new(200);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void* leak_by_memalign() {
    void* p = memalign(256, 300);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void* leak_by_realloc() {
    void* p = realloc(malloc(40), 3000);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void* leak_big() {
    void* p = malloc(1 << 20);
    NO_TAIL_CALL;
    return p;
}
__attribute__((noinline)) void free_it() {
    void* p = malloc(700);
    sink = p;
    free(p);
    NO_TAIL_CALL;
}

}  // extern "C"

namespace {

std::size_t array_bytes = 0;
ucontext_t here, coroutine;

// Calls the profile in a frame as long as the array.
void work() {
    char* const array = static_cast<char*>(alloca(array_bytes + 16));
    array[0] = 1;
    sink = array;
    sink = leak_by_malloc();
    array[0] = 2;
}

void run_on(char* stack, std::size_t bytes) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &here;
    makecontext(&coroutine, work, 0);
    swapcontext(&here, &coroutine);
}

// The second one's stack is shorter, and lies where the first one's was: the frames further out have moved, and where
// they were nothing is mapped.
void coroutines() {
    constexpr std::size_t bytes = 256 * 1024, shorter_by = 8192;
    const auto map_stack = [](char* at, std::size_t length) {
        return static_cast<char*>(mmap(at, length, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0), -1, 0));
    };
    char* const stack = map_stack(nullptr, bytes);
    array_bytes = shorter_by;
    run_on(stack, bytes);
    munmap(stack, bytes);
    map_stack(stack, bytes - shorter_by);
    array_bytes = 0;
    run_on(stack, bytes - shorter_by);
}

}  // namespace

namespace {

void leak_each() {
    for (int i = 0; i < count; ++i) {
        kept.push_back(leak_by_malloc());
        kept.push_back(leak_by_calloc());
        kept.push_back(leak_by_new());
        kept.push_back(leak_by_memalign());
        kept.push_back(leak_by_realloc());
        free_it();
    }
    for (int i = 0; i < 50; ++i) kept.push_back(leak_big());
}

// A block that grows in place or elsewhere, from small to big; what was recorded of it goes when it is freed.
__attribute__((noinline)) void grow() {
    for (int round = 0; round < 40; ++round) {
        void* p = nullptr;
        for (std::size_t n = 100; n < (8 << 20); n += n / 3) p = realloc(p, n);
        sink = p;
        free(p);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "leak") {
        leak_each();
    } else if (what == "threads") {
        std::vector<std::thread> threads;
        for (int t = 0; t < 8; ++t)
            threads.emplace_back([] {
                for (int i = 0; i < count; ++i) sink = leak_by_malloc(), free_it();
            });
        for (std::thread& thread : threads) thread.join();
    } else if (what == "grow") {
        grow();
    } else if (what == "coroutines") {
        coroutines();
    } else if (what == "fork") {
        for (int i = 0; i < count; ++i) kept.push_back(leak_by_malloc());
        const pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < count; ++i) kept.push_back(leak_by_new());
            for (int i = 0; i < count; ++i) free(kept[static_cast<std::size_t>(i)]);
            exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
        for (int i = 0; i < count; ++i) kept.push_back(leak_by_calloc());
    } else if (what == "wait") {
        leak_each();
        for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 0); ++i)
            std::thread([] {
                for (;;) pause();
            }).detach();
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    } else if (what == "leave") {
        leak_each();
        // Signals go to the other thread.
        sigset_t all;
        std::thread([] {
            for (;;) pause();
        }).detach();
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        puts("ready");
        fflush(stdout);
        getchar();
        return 0;
    } else if (what == "vfork") {
        leak_each();
        if (vfork() == 0) {
            raise(SIGTERM);
            _exit(0);
        }
        puts("ready");
        fflush(stdout);
        for (;;) pause();
    } else if (what == "abort") {
        leak_each();
        _exit(0);
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
