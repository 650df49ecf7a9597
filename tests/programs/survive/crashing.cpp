// Uses 16 MiB of heap from two threads and dies, to leave a core.
#include <csignal>
#include <thread>

#include "check.h"

int main() {
    testing_support::require_library();
    void* blocks[160];
    for (void*& p : blocks) {
        p = malloc(100000);
        std::memset(p, 1, 100000);
    }
    std::thread([] { free(malloc(1000)); }).join();
    raise(SIGSEGV);
}
