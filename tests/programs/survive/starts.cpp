// Beside a libc whose functions allocate (allocating_libc.c): the allocator calls some of them under its locks when it
// starts and when a thread does, and must not come back to itself.
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"

namespace {

void* churn(void*) {
    for (std::size_t size = 1; size < std::size_t{4} << 20; size = size * 3 / 2 + 1) {
        void* const p = malloc(size);
        CHECK(p != nullptr);
        std::memset(p, 1, size);
        free(p);
    }
    return nullptr;
}

}  // namespace

int main() {
    churn(nullptr);
    for (int round = 0; round < 20; ++round) {
        pthread_t threads[3];
        for (pthread_t& thread : threads) CHECK(pthread_create(&thread, nullptr, churn, nullptr) == 0);
        for (pthread_t& thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
    }
    testing_support::require_library();
    const auto* calls = static_cast<const int*>(dlsym(RTLD_DEFAULT, "allocating_libc_calls"));
    CHECK(calls != nullptr && (*calls > 0 || testing_support::any_allocator()));
    std::puts("all threads have started");
}
