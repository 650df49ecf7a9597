// Threads that use the allocator late in their lives, or are not made by pthread_create as a
// program sees it: what they held must serve others, or thousands of them would fill the machine.
//
//   late resident   for each kind: how much the resident set has grown after thousands of them
//   late heaps      how many thread heaps were made for those that end one by one
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "check.h"
#include "numalloc/numalloc.h"

#pragma weak numalloc_node_count
#pragma weak numalloc_statistics

namespace {

void use() {
    void* blocks[200];
    for (std::size_t i = 0; i < 200; ++i) {
        blocks[i] = malloc(16 + i * 30);
        CHECK(blocks[i] != nullptr);
        std::memset(blocks[i], 1, 16 + i * 30);
    }
    for (void* p : blocks) free(p);
}

void run(void* (*body)(void*), void* argument = nullptr) {
    pthread_t thread;
    CHECK(pthread_create(&thread, nullptr, body, argument) == 0);
    CHECK(pthread_join(thread, nullptr) == 0);
}

// The key runs in as many rounds as its value says are left.
pthread_key_t key;
void key_destructor(void* value) {
    use();
    const auto round = reinterpret_cast<std::size_t>(value);
    if (round < 4) CHECK(pthread_setspecific(key, reinterpret_cast<void*>(round + 1)) == 0);
}
void set_key(std::size_t round) { CHECK(pthread_setspecific(key, reinterpret_cast<void*>(round)) == 0); }

// A key that lets two or three rounds pass first.
pthread_key_t late_key;
void late_key_destructor(void* value) {
    const auto rounds = reinterpret_cast<std::size_t>(value);
    if (rounds == 1) use();
    else CHECK(pthread_setspecific(late_key, reinterpret_cast<void*>(rounds - 1)) == 0);
}
int threads = 3000;
void first_in_round(std::size_t round) {
    for (int i = 0; i < threads; ++i)
        run(
            [](void* r) -> void* {
                CHECK(pthread_setspecific(late_key, r) == 0);
                return nullptr;
            },
            reinterpret_cast<void*>(round));
}
void first_in_the_third_round() { first_in_round(3); }
void first_in_the_fourth_round() { first_in_round(4); }

void ends_by_a_raw_call() {
    for (int i = 0; i < threads; ++i)
        run([](void*) -> void* {
            use();
            syscall(SYS_exit, 0);
            return nullptr;
        });
}

// At the same time, and again.
void crowds_end_by_a_raw_call() {
    static pthread_barrier_t all;
    constexpr unsigned crowd = 100;
    pthread_barrier_init(&all, nullptr, crowd);
    for (int round = 0; round < 10; ++round) {
        pthread_t threads_of[crowd];
        for (pthread_t& t : threads_of)
            CHECK(pthread_create(
                      &t, nullptr,
                      [](void*) -> void* {
                          use();
                          pthread_barrier_wait(&all);
                          syscall(SYS_exit, 0);
                          return nullptr;
                      },
                      nullptr) == 0);
        for (pthread_t t : threads_of) CHECK(pthread_join(t, nullptr) == 0);
    }
    pthread_barrier_destroy(&all);
}

// Each on a stack of its own, where no other thread was.
void on_new_stacks() {
    constexpr std::size_t bytes = 128 << 10;
    for (int i = 0; i < threads; ++i) {
        void* stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(pthread_attr_setstack(&attributes, stack, bytes) == 0);
        pthread_t thread;
        CHECK(pthread_create(
                  &thread, &attributes,
                  [](void*) -> void* {
                      use();
                      syscall(SYS_exit, 0);
                      return nullptr;
                  },
                  nullptr) == 0);
        CHECK(pthread_join(thread, nullptr) == 0);
        pthread_attr_destroy(&attributes);
    }
}

struct Late {
    bool armed = false;
    ~Late() {
        if (armed) use();
    }
};
thread_local Late late;

void c11_threads() {
    for (int i = 0; i < 3000; ++i) {
        thrd_t thread;
        CHECK(thrd_create(
                  &thread,
                  [](void*) -> int {
                      use();
                      return 0;
                  },
                  nullptr) == thrd_success);
        CHECK(thrd_join(thread, nullptr) == thrd_success);
    }
}

void early_and_late() {
    for (int i = 0; i < 3000; ++i)
        run([](void*) -> void* {
            use();
            set_key(1);
            late.armed = true;
            return nullptr;
        });
}

void first_in_a_key_destructor() {
    for (int i = 0; i < 3000; ++i)
        run([](void*) -> void* {
            set_key(3);
            return nullptr;
        });
}

void first_in_the_last_round() {
    for (int i = 0; i < threads; ++i)
        run([](void*) -> void* {
            set_key(4);
            return nullptr;
        });
}

void first_in_a_thread_local_destructor() {
    for (int i = 0; i < 3000; ++i)
        run([](void*) -> void* {
            late.armed = true;
            return nullptr;
        });
}

// Only frees: what main allocated.
void only_frees() {
    for (int i = 0; i < 3000; ++i) {
        void* block = malloc(3000);
        run(
            [](void* p) -> void* {
                free(p);
                return nullptr;
            },
            block);
    }
}

// Threads that glibc makes itself, past any pthread_create of ours: one for each time that the timer
// runs out. It is set anew only when the last has come: a timer that repeats makes threads faster than
// a busy machine ends them, and glibc keeps the stacks of such a crowd.
sem_t tick;
void timer_threads() {
    CHECK(sem_init(&tick, 0, 0) == 0);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = [](sigval) {
        use();
        sem_post(&tick);
    };
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const itimerspec once{{0, 0}, {0, 100000}};
    for (int i = 0; i < 2000; ++i) {
        CHECK(timer_settime(timer, 0, &once, nullptr) == 0);
        while (sem_wait(&tick) != 0) CHECK(errno == EINTR);
    }
    CHECK(timer_delete(timer) == 0);
    const timespec pause{0, 100000000};
    nanosleep(&pause, nullptr);
}

void aio_threads() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    char bytes[64];
    for (int i = 0; i < 1000; ++i) {
        aiocb request{};
        request.aio_fildes = file;
        request.aio_buf = bytes;
        request.aio_nbytes = sizeof bytes;
        CHECK(aio_read(&request) == 0);
        const aiocb* list[] = {&request};
        aio_suspend(list, 1, nullptr);
        CHECK(aio_return(&request) == static_cast<ssize_t>(sizeof bytes));
    }
    close(file);
}

struct Kind {
    const char* name;
    void (*body)();
};

unsigned long long thread_heaps() {
    numalloc_node_statistics all;
    CHECK(numalloc_statistics(NUMALLOC_ALL_NODES, &all, sizeof all) == 0);
    return all.thread_heaps;
}

// Threads may live on any node.
int heaps() {
    threads = 300;
    // `at_once`: of its threads.
    const struct {
        Kind kind;
        unsigned at_once;
    } kinds[] = {{{"first call in the last round of key destructors", first_in_the_last_round}, 1},
                 {{"first call in the third round", first_in_the_third_round}, 1},
                 {{"first call in the fourth round", first_in_the_fourth_round}, 1},
                 {{"end by a raw system call", ends_by_a_raw_call}, 1},
                 {{"end by a raw system call, on stacks of their own", on_new_stacks}, 1},
                 {{"a hundred at a time end by a raw system call", crowds_end_by_a_raw_call}, 100}};
    bool failed = false;
    for (const auto& [kind, at_once] : kinds) {
        const unsigned long long before = thread_heaps();
        kind.body();
        const unsigned long long made = thread_heaps() - before;
        const bool good = made <= (at_once + 1) * static_cast<unsigned>(numalloc_node_count());
        std::printf("%-50s %8llu heaps%s\n", kind.name, made, good ? "" : "  LOST");
        failed = failed || !good;
    }
    return failed ? 1 : 0;
}

int resident() {
    const Kind kinds[] = {{"C11 threads", c11_threads},
                          {"early and late", early_and_late},
                          {"first call in a key destructor", first_in_a_key_destructor},
                          {"first call in the last round of key destructors", first_in_the_last_round},
                          {"first call in the third round", first_in_the_third_round},
                          {"first call in the fourth round", first_in_the_fourth_round},
                          {"end by a raw system call", ends_by_a_raw_call},
                          {"first call in a thread_local destructor", first_in_a_thread_local_destructor},
                          {"only frees", only_frees},
                          {"timer threads", timer_threads},
                          {"aio threads", aio_threads}};
    bool failed = false;
    for (const Kind& kind : kinds) {
        const long limit = 4096L * (numalloc_node_count == nullptr ? 1 : numalloc_node_count());
        long growth = limit;
        // Twice at most: on a busy machine a crowd of timer threads lives at once, and takes its memory once. What dead
        // threads hold is lost each time.
        for (int i = 0; i < 2 && growth >= limit; ++i) {
            const long before = testing_support::resident_kib();
            kind.body();
            growth = testing_support::resident_kib() - before;
        }
        // A thread may hold some hundreds of KiB while it lives, and the next one may live on another node; thousands
        // of dead ones hold nothing.
        const bool good = growth < limit;
        std::printf("%-50s %8ld KiB%s\n", kind.name, growth, good ? "" : "  LOST");
        failed = failed || !good;
    }
    return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 2);
    CHECK(pthread_key_create(&key, key_destructor) == 0);
    CHECK(pthread_key_create(&late_key, late_key_destructor) == 0);
    use();
    if (std::strcmp(argv[1], "resident") == 0) return resident();
    CHECK(std::strcmp(argv[1], "heaps") == 0);
    return heaps();
}
