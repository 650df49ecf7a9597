// Signals inside malloc and free: timers strike every thread thousands of times a second while it allocates. Handlers
// do only what POSIX allows them; where the code they interrupted was not inside the allocator, they may leave it by
// siglongjmp. NUMALLOC_TEST_INTERVAL: nanoseconds between two of a thread's signals; where handling one takes as long,
// nothing else gets done. NUMALLOC_TEST_STRIKES: how many signals at least, and a hundredth of them jumps.
// NUMALLOC_TEST_SECONDS: in how long.
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <thread>

#include "check.h"

namespace {

std::atomic<long> strikes{0}, jumps{0};
thread_local volatile sig_atomic_t inside_allocator;
thread_local volatile sig_atomic_t may_jump;
thread_local sigjmp_buf back;
long wanted_strikes, wanted_jumps;

void handler(int) {
    const int saved = errno;
    strikes.fetch_add(1, std::memory_order_relaxed);
    int fds[2];
    if (pipe(fds) == 0) {
        close(fds[0]);
        close(fds[1]);
    }
    errno = saved;
    if (may_jump && !inside_allocator) {
        may_jump = 0;
        jumps.fetch_add(1, std::memory_order_relaxed);
        siglongjmp(back, 1);
    }
}

void start_timer(timer_t* timer, long nanoseconds) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 3;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    CHECK(timer_create(CLOCK_MONOTONIC, &event, timer) == 0);
    const itimerspec interval{{0, nanoseconds}, {0, nanoseconds}};
    CHECK(timer_settime(*timer, 0, &interval, nullptr) == 0);
}

void work(std::uint64_t seed) {
    timer_t timer;
    start_timer(&timer, testing_support::number_from_environment("NUMALLOC_TEST_INTERVAL", 100000));
    constexpr std::size_t slots = 300;
    struct Slot {
        unsigned char* p;
        std::size_t size;
        unsigned char mark;
    };
    static thread_local Slot own[slots];
    static thread_local int rounds, i;  // not on the stack: kept over siglongjmp, or a slow machine never ends a round
    static thread_local testing_support::Random random(seed);
    rounds = 0;
    timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        // Back from a handler, or the first time: the slots are whole either way, because nothing
        // outside the allocator changes them while jumping is allowed.
        sigsetjmp(back, 1);
        for (; i < 2000; ++i) {
            Slot& s = own[random.below(slots)];
            may_jump = 0;
            if (s.p != nullptr) {
                CHECK(s.p[0] == s.mark && s.p[s.size - 1] == s.mark);
                inside_allocator = 1;
                free(s.p);
                inside_allocator = 0;
                s.p = nullptr;
            } else {
                s.size = random.below(20) ? random.below(2000) + 1 : random.below(2000000) + 1;
                inside_allocator = 1;
                s.p = static_cast<unsigned char*>(malloc(s.size));
                inside_allocator = 0;
                CHECK(s.p != nullptr);
                s.mark = static_cast<unsigned char>(i);
                s.p[0] = s.p[s.size - 1] = s.mark;
            }
            may_jump = 1;
            for (int spin = 0; spin < 20; ++spin) __asm__ volatile("");
        }
        may_jump = 0;
        ++rounds;
        i = 0;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 4 || strikes <= wanted_strikes ||
             jumps <= wanted_jumps);  // alarm() is the bound
    may_jump = 0;
    timer_delete(timer);
    for (Slot& s : own) free(s.p);
    CHECK(rounds > 10);
}

}  // namespace

int main() {
    testing_support::require_library();
    wanted_strikes = testing_support::number_from_environment("NUMALLOC_TEST_STRIKES", 5000);
    wanted_jumps = wanted_strikes / 100;
    alarm(static_cast<unsigned>(testing_support::number_from_environment("NUMALLOC_TEST_SECONDS", 550)));
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGRTMIN + 3, &action, nullptr) == 0);
    std::thread threads[3];
    for (int i = 0; i < 3; ++i) threads[i] = std::thread(work, 10 + i);
    work(9);
    for (std::thread& t : threads) t.join();
    std::printf("%ld signals, %ld jumps\n", strikes.load(), jumps.load());
    CHECK(strikes > wanted_strikes);
    CHECK(jumps > wanted_jumps);
}
