// new fails while another thread is in dlopen(), whose constructor waits for this thread, and while dlerror() has
// something to say.
//
//   failing_new LIBRARY      its constructor calls wait_for_the_thread()
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "check.h"

namespace {

pthread_barrier_t in_constructor;
pthread_t thread;
volatile std::size_t too_much = std::size_t{1} << 46;
unsigned failures = 0;

void* fail(void*) {
    pthread_barrier_wait(&in_constructor);
    failures += new (std::nothrow) char[too_much] == nullptr ? 1U : 0U;
    failures += ::operator new(too_much, std::align_val_t{256}, std::nothrow) == nullptr ? 1U : 0U;
    try {
        char* volatile p = new char[too_much];
        (void)p;
    } catch (const std::bad_alloc&) {
        ++failures;
    }
    return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void wait_for_the_thread() {
    pthread_barrier_wait(&in_constructor);
    CHECK(pthread_join(thread, nullptr) == 0);
}

int main(int, char** argv) {
    pthread_barrier_init(&in_constructor, nullptr, 2);
    CHECK(pthread_create(&thread, nullptr, fail, nullptr) == 0);
    CHECK(dlopen(argv[1], RTLD_NOW) != nullptr);
    CHECK(failures == 3);

    CHECK(dlopen("/no/such/library.so", RTLD_NOW) == nullptr);
    CHECK(new (std::nothrow) char[too_much] == nullptr);
    const char* const said = dlerror();
    CHECK(said != nullptr && std::strstr(said, "/no/such/library.so") != nullptr);
    std::puts("new failed as it should");
}
