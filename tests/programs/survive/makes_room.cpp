// Under a limit of the address space, memory that was freed makes room for a longer block: by whichever call, again and
// again, with a block at the end of the heap that stays, after requests that were refused, and freed by other threads.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <new>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t MiB = 1024 * 1024;
constexpr std::size_t most = 1000 * MiB;
constexpr std::size_t freed = 500 * MiB;
constexpr std::size_t wanted = 600 * MiB;  // does not fit beside what was freed
constexpr std::size_t too_much = 1100 * MiB;

void fill_and_free(std::size_t size) {
    std::vector<char*> blocks(freed / size);
    for (char*& block : blocks) {
        block = static_cast<char*>(std::malloc(size));
        CHECK(block != nullptr);
        *block = 1;
    }
    for (char* block : blocks) std::free(block);
}

bool by_malloc() {
    void* const block = std::malloc(wanted);
    std::free(block);
    return block != nullptr;
}
bool by_calloc() {
    void* const block = std::calloc(wanted, 1);
    std::free(block);
    return block != nullptr;
}
bool by_realloc() {
    void* const block = std::malloc(100);
    void* const longer = std::realloc(block, wanted);
    std::free(longer == nullptr ? block : longer);
    return longer != nullptr;
}
bool by_memalign() {
    void* block = nullptr;
    const int error = posix_memalign(&block, 4096, wanted);
    std::free(block);
    return error == 0;
}
bool by_new() {
    void* const block = ::operator new(wanted);
    ::operator delete(block);
    return block != nullptr;
}
bool by_nothrow_new() {
    void* const block = ::operator new(wanted, std::nothrow);
    ::operator delete(block);
    return block != nullptr;
}

}  // namespace

int main() {
    const rlimit limit = {most, most};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    bool (*const calls[])() = {by_malloc, by_calloc, by_realloc, by_memalign, by_new, by_nothrow_new};
    for (const std::size_t size : {16'000, 50'000, 500'000})
        for (const auto call : calls) {
            fill_and_free(size);
            CHECK(call());
        }
    void* const stays = std::malloc(4096);
    CHECK(stays != nullptr);
    for (int round = 0; round < 4; ++round) {
        fill_and_free(50'000);
        CHECK(by_malloc());
    }
    CHECK(std::malloc(too_much) == nullptr);
    fill_and_free(50'000);
    while (!by_malloc()) {}  // not within 10 ms of the try that failed
    std::latch is_free(1);
    std::thread other([&] {
        is_free.wait();
        (void)by_malloc();  // may be refused: main's lists hold objects
    });
    fill_and_free(50'000);
    is_free.count_down();
    other.join();
    CHECK(by_malloc());
    std::free(stays);
    std::puts("there was room");
}
