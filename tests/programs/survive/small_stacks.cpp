// Every call of the allocator on the smallest thread stack there may be, and on a small alternate
// signal stack: each with an untouchable page below, so that a deep frame ends the program.
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <csignal>
#include <cstdint>

#include "check.h"

namespace {

void every_call() {
    for (std::size_t size = 0; size < (std::size_t{20} << 20); size = size * 2 + 1) {
        void* p = malloc(size);
        CHECK(p != nullptr);
        p = realloc(p, size * 3 / 2 + 1);
        CHECK(p != nullptr);
        free(p);
        free(calloc(1, size));
        CHECK(posix_memalign(&p, 4096, size) == 0);
        free(p);
        // Enough of one size to reach the slow paths.
        void* many[64];
        const int count = size < 100000 ? 64 : 2;
        for (int i = 0; i < count; ++i) many[i] = malloc(size);
        for (int i = 0; i < count; ++i) free(many[i]);
    }
    (void)mallinfo2();
    malloc_trim(0);
    CHECK(malloc(SIZE_MAX / 2) == nullptr);
}

void* thread_main(void*) {
    every_call();
    return malloc(100);
}

void on_smallest_stack() {
    for (int round = 0; round < 50; ++round) {
        pthread_attr_t attributes;
        CHECK(pthread_attr_init(&attributes) == 0);
        CHECK(pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN)) == 0);
        CHECK(pthread_attr_setguardsize(&attributes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) == 0);
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, thread_main, nullptr) == 0);
        void* result;
        CHECK(pthread_join(thread, &result) == 0);
        free(result);
        CHECK(pthread_attr_destroy(&attributes) == 0);
    }
}

volatile sig_atomic_t handled;

// Raised where no allocator call is under way, so the handler may allocate.
void handler(int) {
    every_call();
    handled = 1;
}

void* on_small_signal_stack(void*) {
    const std::size_t size =
        static_cast<std::size_t>(sysconf(_SC_SIGSTKSZ)) > 8192 ? static_cast<std::size_t>(sysconf(_SC_SIGSTKSZ)) : 8192;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (size + page - 1) & ~(page - 1);
    auto* area = static_cast<char*>(mmap(nullptr, rounded + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(area != MAP_FAILED);
    CHECK(mprotect(area + page, rounded, PROT_READ | PROT_WRITE) == 0);
    stack_t stack{};
    stack.ss_sp = area + page;
    stack.ss_size = rounded;
    CHECK(sigaltstack(&stack, nullptr) == 0);
    handled = 0;
    CHECK(raise(SIGUSR1) == 0);
    CHECK(handled == 1);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, nullptr) == 0);
    munmap(area, rounded + 2 * page);
    return nullptr;
}

}  // namespace

int main() {
    testing_support::require_library();
    on_smallest_stack();
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
    on_small_signal_stack(nullptr);
    // As the first use of the allocator by a thread.
    for (int i = 0; i < 20; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, on_small_signal_stack, nullptr) == 0);
        CHECK(pthread_join(thread, nullptr) == 0);
    }
    std::puts("small stacks suffice");
}
