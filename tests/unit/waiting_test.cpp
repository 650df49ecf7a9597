// Whether the kernel's word about sleeping threads is read as it is meant.
#include "os/waiting.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace numalloc::os {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool can_see = false;  // waiting.h: the sanitizer does not
#else
constexpr bool can_see = true;
#endif

thread_local int somewhere;

// A thread that does something until it is told to end; looked at when it has come to rest.
class Other {
public:
    template <class Wait>
    explicit Other(Wait wait) {
        thread_ = std::thread([this, wait] {
            tls_ = &somewhere;
            id_ = static_cast<int>(syscall(SYS_gettid));
            wait();
        });
        while (id_ == 0) usleep(100);
        usleep(20000);
    }
    ~Other() { thread_.join(); }
    int id() const { return id_; }
    const void* tls() const { return tls_; }
    pthread_t handle() { return thread_.native_handle(); }
    // In one of ten tries: a machine that is busy may not have let it get there.
    bool waits() {
        for (int i = 0; i < 10; ++i, usleep(20000))
            if (WaitSight().waits(id_)) return true;
        return false;
    }

private:
    std::atomic<int> id_{0};
    std::atomic<const void*> tls_{nullptr};
    std::thread thread_;
};

sem_t go_on;
sem_t in_handler;
void wait_for_go() {
    while (sem_wait(&go_on) != 0) {}
}
void wait_in_handler(int) {
    sem_post(&in_handler);
    wait_for_go();
}

class Waiting : public testing::Test {
protected:
    Waiting() {
        sem_init(&go_on, 0, 0);
        sem_init(&in_handler, 0, 0);
    }
    ~Waiting() override { signal(SIGUSR1, SIG_DFL); }
    static void handle(int flags) {
        struct sigaction action {};
        action.sa_handler = wait_in_handler;
        action.sa_flags = flags;
        ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    }
};

// A thread that works is interrupted by SIGUSR1, and its handler waits.
template <class Meanwhile = void (*)()>
void interrupt_and_expect_no_wait(Meanwhile meanwhile = [] {}) {
    std::atomic<bool> over{false};
    Other other([&] {
        while (!over) {}
    });
    pthread_kill(other.handle(), SIGUSR1);
    while (sem_wait(&in_handler) != 0) {}
    meanwhile();
    EXPECT_FALSE(other.waits());
    over = true;
    sem_post(&go_on);
}

TEST_F(Waiting, AThreadThatSleepsInLibcWaits) {
    Other other(wait_for_go);
    EXPECT_EQ(other.waits(), can_see);
    sem_post(&go_on);
}

TEST_F(Waiting, AThreadThatPollsWaits) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    Other other([&] {
        pollfd in{ends[0], POLLIN, 0};
        poll(&in, 1, -1);
    });
    EXPECT_EQ(other.waits(), can_see);
    ASSERT_EQ(write(ends[1], "", 1), 1);
}

TEST_F(Waiting, AThreadThatRunsDoesNot) {
    std::atomic<bool> over{false};
    Other other([&] {
        while (!over) {}
    });
    EXPECT_FALSE(other.waits());
    over = true;
}

TEST_F(Waiting, AThreadInAHandlerDoesNot) {
    handle(0);
    interrupt_and_expect_no_wait();
}

TEST_F(Waiting, NobodyDoesWhereAHandlerLeavesItsSignalUnblocked) {
    handle(SA_NODEFER);
    Other other(wait_for_go);
    EXPECT_FALSE(other.waits());
    sem_post(&go_on);
}

TEST_F(Waiting, AThreadInAHandlerThatIsNoLongerThereDoesNot) {
    for (const bool ignored_meanwhile : {false, true}) {
        handle(ignored_meanwhile ? 0 : static_cast<int>(SA_RESETHAND));
        interrupt_and_expect_no_wait([=] {
            if (ignored_meanwhile) signal(SIGUSR1, SIG_IGN);
        });
    }
}

void unblock_and_wait_in_handler(int number) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    wait_in_handler(number);
}

TEST_F(Waiting, AThreadInAHandlerThatUnblocksItsSignalDoesNot) {
    struct sigaction action {};
    action.sa_handler = unblock_and_wait_in_handler;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    interrupt_and_expect_no_wait();
}

// It may be in a handler of that signal: nobody can tell.
TEST_F(Waiting, AThreadThatBlocksASignalDoesNot) {
    Other other([] {
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
        wait_for_go();
    });
    EXPECT_FALSE(other.waits());
    sem_post(&go_on);
}

TEST_F(Waiting, AThreadThatWaitsForASignalDoesNot) {
    handle(0);
    Other other([] {
        sigset_t none;
        sigemptyset(&none);
        sem_post(&go_on);
        sigsuspend(&none);
    });
    EXPECT_FALSE(other.waits());
    pthread_kill(other.handle(), SIGUSR1);
}

TEST_F(Waiting, AThreadThatSleepsElsewhereThanInLibcDoesNot) {
#if defined(__x86_64__)
    std::atomic<int> word{0};
    Other other([&] {
        const int* address = reinterpret_cast<const int*>(&word);
        long result = SYS_futex;
        register long r10 __asm__("r10") = 0;
        __asm__ volatile("syscall" : "+a"(result) : "D"(address), "S"(0L), "d"(0L), "r"(r10) : "rcx", "r11", "memory");
    });
    EXPECT_FALSE(other.waits());
    word = 1;
    syscall(SYS_futex, &word, 1, 1, nullptr, nullptr, 0);
#endif
}

TEST_F(Waiting, AThreadThatHasEndedHasNoThreadLocals) {
    int id;
    const void* tls;
    {
        Other other(wait_for_go);
        id = other.id();
        tls = other.tls();
        EXPECT_TRUE(has_thread_local(id, tls, &somewhere));
        EXPECT_FALSE(has_thread_local(id, static_cast<const char*>(tls) + 64, &somewhere));
        sem_post(&go_on);
    }
    EXPECT_FALSE(has_thread_local(id, tls, &somewhere));
    EXPECT_FALSE(WaitSight().waits(id));
}

}  // namespace
}  // namespace numalloc::os
