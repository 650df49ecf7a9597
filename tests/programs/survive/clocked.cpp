// Beside a clock_gettime that allocates: the allocator asks for the time under its locks, and must not come back to
// itself.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <ctime>

#include "check.h"

namespace {

void* churn(void*) {
    void* kept[64] = {};
    for (unsigned i = 0; i < 20000; ++i) {
        void*& place = kept[i * 7919 % 64];
        std::free(place);
        CHECK((place = std::malloc(i % 100 == 0 ? 2u << 20 : i * 31 % 40000 + 1)) != nullptr);
    }
    for (void* p : kept) std::free(p);
    return nullptr;
}

}  // namespace

int main() {
    churn(nullptr);
    pthread_t threads[3];
    for (pthread_t& thread : threads) CHECK(pthread_create(&thread, nullptr, churn, nullptr) == 0);
    for (pthread_t& thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
    const auto* calls = static_cast<const int*>(dlsym(RTLD_DEFAULT, "own_clock_calls"));
    CHECK(calls != nullptr);
    const int before = *calls;
    timespec now{};
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && now.tv_sec != 0);
    CHECK(*calls == before + 1);
    CHECK(before == 0);
    std::puts("the clock is the program's");
}
