// Plugins that are opened and closed by several threads at once, over and over, while the host
// frees what they allocated. Argument: the plugin.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 2);
    std::atomic<int> closed{0};
    std::vector<char*> late[4];
    auto work = [&](int lane) {
        for (int i = 0; i < 300; ++i) {
            void* handle = dlopen(argv[1], i % 2 ? RTLD_NOW : RTLD_LAZY);
            CHECK(handle != nullptr);
            auto text = reinterpret_cast<char* (*)(int)>(dlsym(handle, "plugin_text"));
            CHECK(text != nullptr);
            char* p = text(i);
            CHECK(std::strncmp(p, i % 3 == 0 ? "thrown " : "entry of ", 7) == 0);
            if (i % 10 == 0) late[lane].push_back(p);
            else free(p);
            // A thread that used the plugin's thread_local ends while the plugin may be closed.
            if (i % 10 == 5) std::thread([&] { free(text(i)); }).join();
            CHECK(dlclose(handle) == 0);
            ++closed;
        }
    };
    std::thread threads[3];
    for (int i = 0; i < 3; ++i) threads[i] = std::thread(work, i);
    work(3);
    for (std::thread& t : threads) t.join();
    for (auto& list : late)
        for (char* p : list) {
            CHECK(p[0] == 't' || p[0] == 'e');
            free(p);
        }
    CHECK(closed == 1200);
    std::puts("opened and closed");
}
