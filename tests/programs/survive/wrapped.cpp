// A program under a wrapper library that forwards to ours: its calls go through both.
#include <malloc.h>

#include <new>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

int main() {
    auto count = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "wrapper_count"));
    auto frees = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "wrapper_frees"));
    auto reallocs = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "wrapper_reallocs"));
    CHECK(count != nullptr && reallocs != nullptr && frees != nullptr);
    if (!testing_support::any_allocator()) {
        Dl_info info{};
        CHECK(dladdr(dlsym(RTLD_DEFAULT, "calloc"), &info) != 0 &&
              std::strstr(info.dli_fname, "libnumalloc") != nullptr);
    }
    const long before = count(), frees_before = frees();
    for (int i = 0; i < 10000; ++i) {
        void* p = malloc(static_cast<std::size_t>(i));
        CHECK(malloc_usable_size(p) >= static_cast<std::size_t>(i));
        p = realloc(p, static_cast<std::size_t>(i) * 2 + 1);
        free(p);
        free(calloc(10, 10));
    }
    CHECK(count() - before >= 10000 && frees() - frees_before >= 20000);
    // reallocarray is a realloc: a wrapper that changes what malloc returns need not know it.
    const long before_reallocs = reallocs();
    free(reallocarray(reallocarray(nullptr, 10, 10), 20, 20));
    CHECK(reallocs() - before_reallocs == 2);
    // Operators too, as libstdc++'s: a leak checker sees what C++ allocates.
    const long before_operators = count(), frees_before_operators = frees();
    for (int i = 0; i < 100; ++i) ::operator delete(::operator new(50), std::size_t{50});
    for (int i = 0; i < 100; ++i) ::operator delete[](::operator new[](50, std::nothrow));
    CHECK(count() - before_operators == 200 && frees() - frees_before_operators == 200);
    std::thread([] {
        std::vector<std::string> texts;
        for (int i = 0; i < 1000; ++i) texts.push_back(std::string(100, 'a'));
    }).join();
    std::puts("wrapped");
}
