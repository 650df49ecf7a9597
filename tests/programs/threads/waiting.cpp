// Threads that work and then wait.
//
//   waiting lists      a hundred threads use every size, free it all and wait: what their lists hold
//   waiting resident   the same: what is resident while the first thread works for a while, and after malloc_trim()
//   waiting requests   a hundred threads serve small requests and wait between them: what they fetch from the node
//   waiting trim       the same, and what their lists hold when they have gone on after malloc_trim()
//   waiting busy       threads work and wait in turn, for moments, while malloc_trim() runs all the time
//   waiting ends       threads wait and end while malloc_trim() runs
//   waiting forks      threads work and wait, and forks happen; the children do the same
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "check.h"
#include "numalloc/numalloc.h"

#pragma weak numalloc_node_count
#pragma weak numalloc_statistics
#pragma weak numalloc_statistics_of_class

namespace {

using testing_support::Random;

double seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void sleep_microseconds(long us) {
    const timespec t{us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, nullptr);
}

pthread_t start(void* (*function)(void*), std::size_t number) {
    pthread_attr_t small_stack;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 128 * 1024);
    pthread_t thread;
    CHECK(pthread_create(&thread, &small_stack, function, reinterpret_cast<void*>(number)) == 0);
    return thread;
}

// Blocks that say whose they are in each word: an object that two have is seen.
class Blocks {
public:
    explicit Blocks(unsigned long long seed) : random_(seed) {}
    ~Blocks() {
        for (Block& b : blocks_) drop(b);
    }
    void replace_one(std::size_t largest) {
        Block& b = blocks_[random_.below(count)];
        drop(b);
        b.words = 1 + random_.below(largest / 8);
        b.mark = random_.next();
        b.at = static_cast<unsigned long long*>(malloc(b.words * 8));
        CHECK(b.at != nullptr);
        for (std::size_t i = 0; i < b.words; ++i) b.at[i] = b.mark;
    }
    Random& random() { return random_; }

private:
    struct Block {
        unsigned long long* at = nullptr;
        std::size_t words = 0;
        unsigned long long mark = 0;
    };
    static void drop(Block& b) {
        for (std::size_t i = 0; b.at != nullptr && i < b.words; ++i) CHECK(b.at[i] == b.mark);
        free(b.at);
        b.at = nullptr;
    }
    static constexpr std::size_t count = 400;
    Random random_;
    Block blocks_[count];
};

// ---- resident

constexpr std::size_t crowd = 100;
// 6,000 objects a thread, or as many as are some 6 MB with what a size class rounds up.
constexpr unsigned long long most_in_use = crowd * 8 << 20;
pthread_barrier_t all_have_worked;
pthread_barrier_t all_go_on;

// The CPUs that the threads may use.
std::size_t cpus() {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<std::size_t>(CPU_COUNT(&mask)) : crowd + 1;
}

std::vector<pthread_t> start_crowd(void* (*function)(void*)) {
    pthread_barrier_init(&all_have_worked, nullptr, crowd + 1);
    pthread_barrier_init(&all_go_on, nullptr, crowd + 1);
    std::vector<pthread_t> threads;
    for (std::size_t i = 0; i < crowd; ++i) threads.push_back(start(function, i));
    return threads;
}

void use_every_size(std::size_t number) {
    constexpr unsigned most_objects = 6000;
    static void* objects[crowd][most_objects];
    void** const held = objects[number];
    Random random(number);
    for (unsigned round = 0; round < 20; ++round) {
        const unsigned largest = 1U << (5 + round % 11);
        const unsigned count = most_objects / (1 + largest / 2048);
        for (unsigned i = 0; i < count; ++i) {
            const std::size_t size = 1 + random.below(largest);
            held[i] = malloc(size);
            CHECK(held[i] != nullptr);
            std::memset(held[i], 1, size);
        }
        for (unsigned i = 0; i < count; ++i) free(held[i]);
    }
}

void* work_and_wait(void* argument) {
    const auto number = reinterpret_cast<std::size_t>(argument);
    Blocks blocks(number);
    for (int round = 0; round < 2; ++round) {
        use_every_size(number);
        for (int i = 0; i < 20; ++i) blocks.replace_one(200);
        pthread_barrier_wait(&all_have_worked);
        pthread_barrier_wait(&all_go_on);
    }
    return nullptr;
}

// On a busy machine a second is less work.
void work_alone(double duration, int rounds) {
    void* p[3000];
    for (const double end = seconds() + duration; seconds() < end || rounds > 0; --rounds) {
        sleep_microseconds(1000);
        for (void*& q : p) q = malloc(3000);
        for (void* q : p) free(q);
    }
}

void resident() {
    const std::vector<pthread_t> threads = start_crowd(work_and_wait);
    long waiting[2][2];
    for (auto& round : waiting) {
        pthread_barrier_wait(&all_have_worked);
        round[0] = testing_support::resident_kib();
        if (&round == &waiting[0]) work_alone(6, 4000);
        else sleep_microseconds(200000), malloc_trim(0);
        round[1] = testing_support::resident_kib();
        pthread_barrier_wait(&all_go_on);
    }
    for (pthread_t t : threads) pthread_join(t, nullptr);
    std::printf(
        "%zu threads wait: resident %ld KiB, %ld when one has worked for some seconds; %ld, %ld after malloc_trim\n",
        crowd, waiting[0][0], waiting[0][1], waiting[1][0], waiting[1][1]);
    std::fflush(stdout);
    // 5 MiB are the array, 8 stacks, and each bag that has a live object stays. What the budget of many CPUs adds may
    // lie in twice as many pages.
    const long of_cpus = std::clamp(static_cast<long>(cpus()) - 10, 0L, static_cast<long>(crowd) - 9) * 2 * 2048;
    CHECK(waiting[1][0] <= 2150 * 1024);
    CHECK(waiting[1][1] <= 110 * 1024 + of_cpus);
}

// ---- lists

// Counted by the library, class by class: no page of the machine is asked for.
unsigned long long held_by_lists() {
    unsigned long long held = 0;
    numalloc_class_statistics of_class;
    for (long long size = 0;
         (size = numalloc_statistics_of_class(NUMALLOC_ALL_NODES, static_cast<std::size_t>(size) + 1, &of_class,
                                              sizeof of_class)) > 0;)
        held += static_cast<unsigned long long>(size) * of_class.lists;
    return held;
}

// What lists hold at most: 192 KiB of each thread, and the budget of each node: 20 MiB, 2 MiB for each thread that can
// run at a time, or a 32nd of what is in use.
unsigned long long most_in_lists() {
    const std::size_t running = std::min(crowd + 1, cpus());
    const auto nodes = static_cast<unsigned>(numalloc_node_count());
    return crowd * 192 * 1024 + nodes * std::max({20ULL << 20, running * (2ULL << 20), most_in_use / 32});
}

void lists() {
    const std::vector<pthread_t> threads = start_crowd(work_and_wait);
    for (int round = 0; round < 2; ++round) {
        pthread_barrier_wait(&all_have_worked);
        const unsigned long long most = most_in_lists();
        const unsigned long long held = held_by_lists();
        std::printf("%zu threads wait: their lists hold %llu KiB, %llu at most\n", crowd, held / 1024, most / 1024);
        std::fflush(stdout);
        CHECK(held > 0 && held <= most);
        pthread_barrier_wait(&all_go_on);
    }
    for (pthread_t t : threads) pthread_join(t, nullptr);
}

// ---- trim

void* work_and_go_on(void* argument) {
    use_every_size(reinterpret_cast<std::size_t>(argument));
    pthread_barrier_wait(&all_have_worked);
    pthread_barrier_wait(&all_go_on);
    void* p[1000];
    for (void*& q : p) CHECK((q = malloc(40)) != nullptr);
    for (void* q : p) free(q);
    pthread_barrier_wait(&all_have_worked);
    pthread_barrier_wait(&all_go_on);
    return nullptr;
}

// Threads that wait while another calls malloc_trim() give back what their lists hold when they go on.
void trim() {
    const std::vector<pthread_t> threads = start_crowd(work_and_go_on);
    unsigned long long held[2];
    for (unsigned long long& now : held) {
        pthread_barrier_wait(&all_have_worked);
        now = held_by_lists();
        malloc_trim(0);
        pthread_barrier_wait(&all_go_on);
    }
    for (pthread_t t : threads) pthread_join(t, nullptr);
    std::printf("lists hold %llu KiB, and %llu when all have gone on after malloc_trim\n", held[0] / 1024,
                held[1] / 1024);
    std::fflush(stdout);
    CHECK(held[0] > crowd << 17 && held[1] <= crowd << 16);
}

// ---- requests

constexpr int requests = 10;
constexpr int requests_to_grow = 1;

void* serve(void*) {
    for (int request = 0; request < requests; ++request) {
        void* p[60];
        for (std::size_t i = 0; i < 60; ++i) CHECK((p[i] = malloc(16 + i * 24)) != nullptr);
        for (void* q : p) free(q);
        pthread_barrier_wait(&all_have_worked);
        pthread_barrier_wait(&all_go_on);
    }
    return nullptr;
}

unsigned long long fetched_objects() {
    numalloc_node_statistics all;
    CHECK(numalloc_statistics(NUMALLOC_ALL_NODES, &all, sizeof all) == 0);
    return all.fetched_objects;
}

// Lists grow for the first request. Later ones find all that they need there: not one object a thread is fetched.
void serve_requests() {
    const std::vector<pthread_t> threads = start_crowd(serve);
    unsigned long long before = 0;
    bool grown = true;
    for (int request = 0; request < requests; ++request) {
        pthread_barrier_wait(&all_have_worked);
        const unsigned long long now = fetched_objects();
        std::printf("request %d: %llu objects fetched\n", request + 1, now - before);
        std::fflush(stdout);
        grown = grown && (request < requests_to_grow || now - before < crowd);
        before = now;
        pthread_barrier_wait(&all_go_on);
    }
    for (pthread_t t : threads) pthread_join(t, nullptr);
    CHECK(grown);
}

// ---- busy

std::atomic<bool> over{false};

void* work_and_sleep(void* argument) {
    Blocks blocks(reinterpret_cast<std::size_t>(argument));
    sem_t never;
    sem_init(&never, 0, 0);
    while (!over) {
        for (std::size_t i = blocks.random().below(300); i > 0; --i) blocks.replace_one(600);
        if (blocks.random().below(2) == 0) {
            sleep_microseconds(static_cast<long>(blocks.random().below(200)));
        } else {
            timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 100000;
            if (until.tv_nsec < 1000000000) sem_timedwait(&never, &until);
        }
    }
    return nullptr;
}

void busy() {
    std::vector<pthread_t> threads;
    for (std::size_t i = 0; i < 6; ++i) threads.push_back(start(work_and_sleep, i));
    unsigned trims = 0;
    for (const double end = seconds() + 5; seconds() < end; ++trims) malloc_trim(0);
    over = true;
    for (pthread_t t : threads) pthread_join(t, nullptr);
    std::printf("%u times given back: all blocks as they were\n", trims);
}

// ---- ends

void* wait_and_end(void* argument) {
    Blocks blocks(reinterpret_cast<std::size_t>(argument));
    for (int i = 0; i < 300; ++i) blocks.replace_one(300);
    sleep_microseconds(static_cast<long>(blocks.random().below(300)));
    return nullptr;
}

void* trim_on(void*) {
    while (!over) malloc_trim(0);
    return nullptr;
}

void ends() {
    const pthread_t trimmer = start(trim_on, 0);
    std::size_t started = 0;
    for (const double end = seconds() + 5; seconds() < end;) {
        std::vector<pthread_t> threads;
        for (int i = 0; i < 8; ++i) threads.push_back(start(wait_and_end, ++started));
        for (pthread_t t : threads) pthread_join(t, nullptr);
    }
    over = true;
    pthread_join(trimmer, nullptr);
    std::printf("%zu threads ended: all blocks as they were\n", started);
}

// ---- forks

void forks() {
    std::vector<pthread_t> threads;
    for (std::size_t i = 0; i < 6; ++i) threads.push_back(start(work_and_sleep, i));
    unsigned children = 0;
    for (const double end = seconds() + 5; seconds() < end; ++children) {
        malloc_trim(0);
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            const pthread_t own = start(wait_and_end, 1);
            malloc_trim(0);
            Blocks blocks(2);
            for (int i = 0; i < 300; ++i) blocks.replace_one(300);
            malloc_trim(0);
            pthread_join(own, nullptr);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    over = true;
    for (pthread_t t : threads) pthread_join(t, nullptr);
    std::printf("%u children: all blocks as they were\n", children);
}

}  // namespace

int main(int, char** argv) {
    testing_support::require_library();
    const std::string mode = argv[1];
    if (mode == "lists") lists();
    else if (mode == "requests") serve_requests();
    else if (mode == "trim") trim();
    else if (mode == "resident") resident();
    else if (mode == "busy") busy();
    else if (mode == "ends") ends();
    else if (mode == "forks") forks();
    else CHECK(!"a known mode");
}
