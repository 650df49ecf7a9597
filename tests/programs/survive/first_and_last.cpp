// The first allocation before any constructor and the last free after every destructor.
// Blocks made at each stage are checked and freed at a later one, and each later stage allocates
// again: pre-init arrays, constructors of every priority, main, thread_local destructors, pthread
// keys (which run again while they leave values), atexit, static destructors, destructors of
// every priority, and fini arrays.
#include <pthread.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int stages = 32;
struct Kept {
    unsigned char* p;
    std::size_t size;
};
Kept kept[stages * 8];
int kept_count;
int stages_run;

void keep_some() {
    ++stages_run;
    for (std::size_t size :
         {std::size_t{24}, std::size_t{300}, std::size_t{5000}, std::size_t{70000}, std::size_t{900000}}) {
        auto* p = static_cast<unsigned char*>(malloc(size));
        CHECK(p != nullptr);
        std::memset(p, kept_count & 0xFF, size);
        if (kept_count < stages * 8) kept[kept_count++] = {p, size};
    }
}

void free_older() {
    // All but the newest ten, so that something is always left for a later stage.
    while (kept_count > 10) {
        const Kept oldest = kept[0];
        for (std::size_t i = 1; i < oldest.size; ++i) CHECK(oldest.p[i] == oldest.p[0]);
        free(oldest.p);
        --kept_count;
        for (int i = 0; i < kept_count; ++i) kept[i] = kept[i + 1];
    }
    free(calloc(3, 1000));
    free(realloc(malloc(10), 100000));
}

void stage() {
    keep_some();
    free_older();
}

void preinit(int, char**, char**) { stage(); }
__attribute__((section(".preinit_array"), used)) void (*preinit_entry)(int, char**, char**) = preinit;

__attribute__((constructor(101))) void constructor_first() { stage(); }
__attribute__((constructor)) void constructor_last() { stage(); }
__attribute__((destructor)) void destructor_first() { stage(); }

// The very last code of the program: reports, because main has long returned.
__attribute__((destructor(101))) void destructor_last() {
    stage();
    while (kept_count > 0) free(kept[--kept_count].p);
    // preinit, 2 constructors, static, main, thread_local x2, key x8, atexit x2, ~static, 2 destructors
    CHECK(stages_run >= 16);
    const char done[] = "every stage ran\n";
    CHECK(write(1, done, sizeof done - 1) == sizeof done - 1);
}

struct Static {
    std::string text = std::string(5000, 's');
    std::vector<int> numbers = std::vector<int>(10000, 7);
    Static() { stage(); }
    ~Static() {
        stage();
        CHECK(text[4999] == 's' && numbers[9999] == 7);
        numbers.resize(100000);
    }
};
Static the_static;

struct PerThread {
    std::vector<int> numbers = std::vector<int>(1000, 3);
    ~PerThread() {
        CHECK(numbers[999] == 3);
        stage();
    }
};
thread_local PerThread per_thread;

pthread_key_t key;
int key_runs;

// Leaves a value again, so that it runs in every round there is: after thread_local destructors,
// and after whatever key the allocator itself may use.
void key_destructor(void* value) {
    free(value);
    ++key_runs;
    stage();
    void* p = malloc(100);
    std::memset(p, 1, 100);
    pthread_setspecific(key, p);
}

}  // namespace

int main() {
    testing_support::require_library();
    stage();
    atexit([] { stage(); });
    CHECK(pthread_key_create(&key, key_destructor) == 0);
    std::thread([] {
        per_thread.numbers[0] = 3;
        pthread_setspecific(key, malloc(64));
    }).join();
    CHECK(key_runs >= 4);  // PTHREAD_DESTRUCTOR_ITERATIONS of glibc
    // Threads that end when nothing of theirs was ever allocated, or everything was freed.
    for (int i = 0; i < 100; ++i) std::thread([] {}).join();
    for (int i = 0; i < 100; ++i) std::thread([] { free(malloc(100)); }).join();
    per_thread.numbers[0] = 3;
    pthread_setspecific(key, malloc(64));
    atexit([] { stage(); });
    exit(0);
}
