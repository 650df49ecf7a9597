// Every way a thread can end: return, pthread_exit, from deep inside, cancelled while waiting,
// cancelled while it allocates, with the process (exit in a thread, main gone by pthread_exit),
// never joined. Memory it held is freed by others afterwards.
#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <ctime>

#include "check.h"

namespace {

std::atomic<int> cleaned{0};

void* ended_by_exit(void* argument) {
    void* p = malloc(777);
    struct Guard {
        ~Guard() { ++cleaned; }
    } guard;  // forced unwinding runs destructors
    if (argument != nullptr) pthread_exit(p);
    return p;
}

void by_exit() {
    cleaned = 0;
    for (int i = 0; i < 200; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, ended_by_exit, i % 2 ? &cleaned : nullptr) == 0);
        void* result = nullptr;
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result != nullptr);
        std::memset(result, 1, 777);
        free(result);
    }
    CHECK(cleaned == 200);
}

void* ended_by_cancel(void* argument) {
    const bool waiting = argument != nullptr;
    void* held = malloc(5000);
    pthread_cleanup_push(
        +[](void* p) {
            free(p);
            ++cleaned;
        },
        held);
    if (waiting) {
        for (;;) {
            timespec pause{100, 0};
            nanosleep(&pause, nullptr);
        }
    } else {
        // Deferred cancellation strikes at cancellation points: malloc and free must be none, or
        // they would leave a lock held or a list half made.
        for (std::size_t i = 1;; ++i) {
            void* p = malloc(i % 100000);
            free(p);
            free(calloc(1, i % 3000));
            if (i % 50 == 0) pthread_testcancel();
        }
    }
    pthread_cleanup_pop(0);
    return nullptr;
}

void by_cancel() {
    cleaned = 0;
    for (int i = 0; i < 200; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, ended_by_cancel, i % 2 ? &cleaned : nullptr) == 0);
        timespec pause{0, (i % 10) * 100000};
        nanosleep(&pause, nullptr);
        CHECK(pthread_cancel(thread) == 0);
        void* result = nullptr;
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
    }
    // A cancel that strikes before the push finds nothing to clean.
    CHECK(cleaned >= 150);
}

// With asynchronous cancellation on around plain computing, put off around the allocator: by the type, because glibc up
// to 2.36 at least cancels a thread that has set the state to disabled after pthread_cancel() looked at it.
void* ended_asynchronously(void*) {
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (;;) {
        for (int spin = 0; spin < 1000; ++spin) __asm__ volatile("");
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
        free(malloc(2000));
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    }
}

void by_asynchronous_cancel() {
    for (int i = 0; i < 100; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, nullptr, ended_asynchronously, nullptr) == 0);
        timespec pause{0, (i % 7) * 50000};
        nanosleep(&pause, nullptr);
        CHECK(pthread_cancel(thread) == 0);
        void* result = nullptr;
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
}

template <class Body>
int in_child(Body body) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(300);
        body();
        _exit(99);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void with_the_process() {
    // Main goes first, a thread ends the process.
    CHECK(in_child([] {
              pthread_t thread;
              CHECK(pthread_create(
                        &thread, nullptr,
                        [](void*) -> void* {
                            timespec pause{0, 20000000};
                            nanosleep(&pause, nullptr);
                            free(malloc(10000));
                            exit(21);
                        },
                        nullptr) == 0);
              pthread_exit(nullptr);
          }) == 21);
    // exit while others allocate.
    for (int i = 0; i < 50; ++i)
        CHECK(in_child([] {
                  for (int k = 0; k < 3; ++k) {
                      pthread_t thread;
                      CHECK(pthread_create(
                                &thread, nullptr,
                                [](void*) -> void* {
                                    for (std::size_t n = 1;; ++n) free(malloc(n % 200000));
                                },
                                nullptr) == 0);
                  }
                  timespec pause{0, 2000000};
                  nanosleep(&pause, nullptr);
                  exit(22);
              }) == 22);
}

}  // namespace

int main() {
    testing_support::require_library();
    alarm(550);
    by_exit();
    by_cancel();
    by_asynchronous_cancel();
    with_the_process();
    std::puts("threads end well");
}
