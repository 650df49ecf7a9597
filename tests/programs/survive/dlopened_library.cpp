// A program on glibc's malloc that opens libnumalloc itself, uses it beside its own, from several
// threads, and closes it: the two must not meet, and nothing may break at the end.
// Argument: the library.
#include <atomic>
#include <thread>

#include "check.h"

int main(int argc, char** argv) {
    CHECK(argc == 2);
    CHECK(!testing_support::library_in_use());
    for (int round = 0; round < 3; ++round) {
        void* handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) std::fprintf(stderr, "%s\n", dlerror());
        CHECK(handle != nullptr);
        auto other_malloc = reinterpret_cast<void* (*)(std::size_t)>(dlsym(handle, "malloc"));
        auto other_free = reinterpret_cast<void (*)(void*)>(dlsym(handle, "free"));
        CHECK(other_malloc != nullptr && other_free != nullptr);
        CHECK(reinterpret_cast<void*>(other_malloc) != dlsym(RTLD_DEFAULT, "malloc"));
        auto work = [&] {
            testing_support::Random random(9);
            void* theirs[200] = {};
            void* ours[200] = {};
            for (int i = 0; i < 20000; ++i) {
                const auto slot = random.below(200);
                const std::size_t size = random.below(3000) + 1;
                other_free(theirs[slot]);
                free(ours[slot]);
                theirs[slot] = other_malloc(size);
                ours[slot] = malloc(size);
                CHECK(theirs[slot] != nullptr && ours[slot] != nullptr);
                std::memset(theirs[slot], 1, size);
                std::memset(ours[slot], 2, size);
            }
            for (void* p : theirs) other_free(p);
            for (void* p : ours) free(p);
        };
        std::thread threads[4];
        for (std::thread& t : threads) t = std::thread(work);
        for (std::thread& t : threads) t.join();
        work();
        CHECK(dlclose(handle) == 0);
        // Threads that start and end after the close.
        for (int i = 0; i < 20; ++i) std::thread([] { free(malloc(100)); }).join();
    }
    std::puts("beside each other");
}
