// Real threads on a made-up machine: where they are bound, and what shows of it.
#include "os/program_calls.h"
#include "support/threads_fixture.h"

struct sched_attr;
extern "C" int sched_setattr(pid_t, struct sched_attr*, unsigned) noexcept;  // in glibc 2.41 and later

namespace numalloc {
namespace {

// Where a thread is put while no other lives. Tests may have moved main in the meantime.
unsigned home_of_next() {
    unsigned next = 0;
    std::thread([&] { next = home(); }).join();
    return next;
}

TEST_F(Threads, MainIsBoundAndSeesWhatItWasGiven) {
    EXPECT_EQ(in_kernel().size(), 1u);
    EXPECT_EQ(in_kernel()[0], all[home()]);
    EXPECT_EQ(seen(), all);
    EXPECT_EQ(seen(tid()), all);
    EXPECT_EQ(seen(pthread_self()), all);
    pthread_attr_t attr;
    ASSERT_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
    Mask mask;
    pthread_attr_getaffinity_np(&attr, sizeof mask, &mask);
    EXPECT_EQ(cpus_of(mask), all);
    pthread_attr_destroy(&attr);
}

TEST_F(Threads, EachNextOnTheNextNode) {
    std::vector<unsigned> homes(2 * all.size());
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{0};
    for (unsigned i = 0; i < homes.size(); ++i)
        threads.emplace_back([&, i] {
            homes[i] = home();
            EXPECT_EQ(in_kernel(), std::vector<int>{all[homes[i]]});
            EXPECT_EQ(seen(), all);
            ++running;
            while (running < homes.size()) sched_yield();
        });
    for (auto& t : threads) t.join();
    for (unsigned i = 0; i < homes.size(); ++i) EXPECT_EQ(homes[i], (home() + 1 + i) % all.size()) << i;
}

TEST_F(Threads, OthersSeeTheUsersMaskToo) {
    std::atomic<int> stage{0};
    std::atomic<int> id{0};
    std::thread t([&] {
        id = tid();
        stage = 1;
        while (stage != 2) usleep(100);
    });
    EXPECT_EQ(seen(t.native_handle()), all) << "at once, even before it runs";
    while (stage != 1) usleep(100);
    EXPECT_EQ(seen(id), all);
    EXPECT_EQ(in_kernel(id).size(), 1u);
    stage = 2;
    t.join();
}

TEST_F(Threads, AnAffinityInTheAttributesIsTheUsers) {
    for (unsigned n = 0; n < all.size(); ++n) {
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        const Mask mask = one(all[n]);
        pthread_attr_setaffinity_np(&attr, sizeof mask, &mask);
        pthread_t t;
        ASSERT_EQ(pthread_create(
                      &t, &attr,
                      [](void* n) -> void* {
                          const unsigned node = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(n));
                          EXPECT_EQ(home(), node);
                          EXPECT_EQ(in_kernel(), std::vector<int>{all[node]});
                          EXPECT_EQ(seen(), std::vector<int>{all[node]});
                          std::thread([node] {
                              EXPECT_EQ(home(), node);
                              EXPECT_EQ(seen(), std::vector<int>{all[node]});
                          }).join();
                          return nullptr;
                      },
                      reinterpret_cast<void*>(std::uintptr_t{n})),
                  0);
        pthread_join(t, nullptr);
        pthread_attr_destroy(&attr);
    }
}

TEST_F(Threads, TheUsersMaskWinsAndAWideOneReturnsToThePolicy) {
    std::thread([] {
        for (unsigned n = 0; n < all.size(); ++n) {
            const Mask mask = one(all[n]);
            ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
            EXPECT_EQ(home(), n);
            EXPECT_EQ(seen(), std::vector<int>{all[n]});
            EXPECT_EQ(in_kernel(), std::vector<int>{all[n]});
        }
        ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof all_mask, &all_mask), 0);
        EXPECT_EQ(seen(), all);
        EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
        const Mask none{};
        EXPECT_EQ(sched_setaffinity(0, sizeof none, &none), -1);
        EXPECT_EQ(errno, EINVAL);
        EXPECT_EQ(seen(), all);
    }).join();
}

TEST_F(Threads, OneThreadSetsAnothers) {
    for (int i = 0; i < 200; ++i) {
        const unsigned n = static_cast<unsigned>(i) % static_cast<unsigned>(all.size());
        const Mask mask = one(all[n]);
        std::atomic<int> stage{0};
        std::thread t([&] {
            while (stage != 1) sched_yield();
            EXPECT_EQ(home(), n);
            EXPECT_EQ(seen(), std::vector<int>{all[n]});
            EXPECT_EQ(in_kernel(), std::vector<int>{all[n]});
        });
        // Straight after creation: often before the thread's first instruction.
        ASSERT_EQ(pthread_setaffinity_np(t.native_handle(), sizeof mask, &mask), 0);
        EXPECT_EQ(seen(t.native_handle()), std::vector<int>{all[n]});
        stage = 1;
        t.join();
    }
}

TEST_F(Threads, C11ThreadsCancelledAndExitingOnes) {
    const unsigned next = home_of_next();
    thrd_t t;
    ASSERT_EQ(thrd_create(&t, [](void*) { return static_cast<int>(home()) + 100; }, nullptr), thrd_success);
    int result = 0;
    thrd_join(t, &result);
    EXPECT_EQ(static_cast<unsigned>(result - 100), next);

    pthread_t p;
    pthread_create(&p, nullptr, [](void*) -> void* { pthread_exit(reinterpret_cast<void*>(7)); }, nullptr);
    void* value = nullptr;
    pthread_join(p, &value);
    EXPECT_EQ(value, reinterpret_cast<void*>(7));

    pthread_create(
        &p, nullptr,
        [](void*) -> void* {
            for (;;) pause();
        },
        nullptr);
    pthread_cancel(p);
    pthread_join(p, &value);
    EXPECT_EQ(value, PTHREAD_CANCELED);
}

TEST_F(Threads, AttributesAreKept) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    static std::atomic<int> done;
    done = 0;
    // The creator's memory may be gone before pthread_create returns: the thread frees it.
    auto* handle = new pthread_t;
    void* argument = handle;
    ASSERT_EQ(pthread_create(
                  handle, &attr,
                  [](void* h) -> void* {
                      EXPECT_TRUE(pthread_equal(*static_cast<pthread_t*>(h), pthread_self()));
                      delete static_cast<pthread_t*>(h);
                      pthread_attr_t mine;
                      pthread_getattr_np(pthread_self(), &mine);
                      std::size_t size = 0;
                      int detached = 0;
                      pthread_attr_getstacksize(&mine, &size);
                      pthread_attr_getdetachstate(&mine, &detached);
                      EXPECT_EQ(size, std::size_t{1} << 20);
                      EXPECT_EQ(detached, PTHREAD_CREATE_DETACHED);
                      pthread_attr_destroy(&mine);
                      done = 1;
                      return nullptr;
                  },
                  argument),
              0);
    while (done == 0) usleep(100);
    pthread_attr_destroy(&attr);
}

TEST_F(Threads, TenThousandInTurnLeaveNoRecords) {
    const unsigned before = home_of_next();
    for (int i = 0; i < 10000; ++i) {
        pthread_t p;
        ASSERT_EQ(pthread_create(&p, nullptr, [](void*) -> void* { return nullptr; }, nullptr), 0);
        pthread_join(p, nullptr);
    }
    EXPECT_EQ(home_of_next(), before) << "nothing counts any more: the next thread goes where the first one went";
}

TEST_F(Threads, ManyAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<bool> go{false};
    std::atomic<int> wrong{0};
    for (int i = 0; i < 500; ++i)
        threads.emplace_back([&] {
            while (!go) usleep(1000);
            if (seen() != all || in_kernel().size() != 1) ++wrong;
        });
    go = true;
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST_F(Threads, AnUnannouncedThreadIsTakenIn) {
    // A helper of glibc's own: pthread_create inside libc is not interposed.
    static std::atomic<int> stage;
    static std::vector<int> kernel, user;
    stage = 0;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = [](sigval) {
        home();
        kernel = in_kernel();
        user = seen();
        placement::thread_ended();
        stage = 1;
    };
    timer_t timer;
    ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    itimerspec soon{};
    soon.it_value.tv_nsec = 1000000;
    timer_settime(timer, 0, &soon, nullptr);
    while (stage == 0) usleep(1000);
    timer_delete(timer);
    EXPECT_EQ(kernel.size(), 1u);
    EXPECT_EQ(user, all);
}

// The heap is returned in the second round of key destructors.
TEST_F(Threads, DestructorsAfterTheHeapsEndSeeTheUsersMask) {
    static pthread_key_t key;
    static int round;
    static std::vector<int> kernel, user;
    round = 0;
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* value) {
                                     if (++round == 2) placement::heap_ended();
                                     if (round < 3) return (void)pthread_setspecific(key, value);
                                     kernel = in_kernel();
                                     user = seen();
                                 }),
              0);
    std::thread([] { pthread_setspecific(key, &key); }).join();
    pthread_key_delete(key);
    EXPECT_EQ(round, 3);
    EXPECT_EQ(kernel.size(), 1u);
    EXPECT_EQ(user, all);
}

TEST_F(Threads, SyscallAnswersAsLibcsFunctions) {
    std::thread([] {
        EXPECT_EQ(in_kernel().size(), 1u);
        EXPECT_EQ(by_syscall(), all);
        EXPECT_EQ(by_syscall(tid()), all);
        Mask mask;
        EXPECT_EQ(syscall(SYS_sched_getaffinity, 0, 1, &mask), -1);
        EXPECT_EQ(errno, EINVAL);
        EXPECT_EQ(syscall(SYS_sched_getaffinity, -1, sizeof mask, &mask), -1);
        const unsigned other = (home() + 1) % static_cast<unsigned>(all.size());
        mask = one(all[other]);
        ASSERT_EQ(syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask), 0);
        EXPECT_EQ(home(), other);
        EXPECT_EQ(seen(), std::vector<int>{all[other]});
        EXPECT_EQ(by_syscall(), std::vector<int>{all[other]});
        ASSERT_EQ(syscall(SYS_sched_setaffinity, 0, sizeof all_mask, &all_mask), 0);
        EXPECT_EQ(seen(), all);
        EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
    }).join();
}

// SCHED_DEADLINE needs all CPUs of the machine, and more rights than a test may have: whoever has them gets it.
TEST_F(Threads, ADeadlineIsRefusedOnlyToWhoMayNotHaveIt) {
    struct Attributes {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    };
    std::thread([] {
        Attributes deadline{sizeof(Attributes), 6, 0, 0, 0, 1000000, 10000000, 10000000};
        Attributes normal{sizeof(Attributes), 0, 0, 0, 0, 0, 0, 0};
        const std::vector<int> bound = in_kernel();
        // With its user's mask, as it would be without the library.
        ASSERT_TRUE(set_in_kernel(all_mask));
        const bool may = os::make({SYS_sched_setattr, {0, reinterpret_cast<long>(&deadline)}}) == 0;
        if (may) {
            EXPECT_EQ(syscall(SYS_sched_setattr, 0, &normal, 0), 0);
        }
        ASSERT_TRUE(set_in_kernel(one(bound[0])));

        EXPECT_EQ(syscall(SYS_sched_setattr, 0, &deadline, 0), may ? 0 : -1);
        EXPECT_EQ(in_kernel(), may ? all : bound);
        EXPECT_EQ(seen(), all);
        EXPECT_EQ(sched_setattr(0, reinterpret_cast<sched_attr*>(&normal), 0), 0);
    }).join();
}

TEST_F(Threads, AMaskSetBehindOurBackCounts) {
    std::thread([] {
        const unsigned other = (home() + 1) % static_cast<unsigned>(all.size());
        const Mask mask = one(all[other]);
        ASSERT_TRUE(set_in_kernel(mask));
        EXPECT_EQ(home(), other);
        EXPECT_EQ(seen(), std::vector<int>{all[other]});
        EXPECT_EQ(system(("test \"$(nproc)\" = 1")), 0);
        EXPECT_EQ(in_kernel(), std::vector<int>{all[other]});
    }).join();
}

TEST_F(Threads, AMaskSetFromOutsideCountsForNewThreadsAndForChildren) {
    std::thread([] {
        const unsigned other = (home() + 1) % static_cast<unsigned>(all.size());
        const Mask mask = one(all[other]);
        ASSERT_TRUE(set_in_kernel(mask));  // as taskset -p does, and the thread has not allocated since
        std::thread([&] {
            EXPECT_EQ(home(), other);
            EXPECT_EQ(in_kernel(), std::vector<int>{all[other]});
            EXPECT_EQ(seen(), std::vector<int>{all[other]});
        }).join();
        EXPECT_EQ(seen(), std::vector<int>{all[other]});
        EXPECT_EQ(system("test \"$(nproc)\" = 1"), 0);
        ASSERT_TRUE(set_in_kernel(all_mask));
        std::thread([&] {
            EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
            EXPECT_EQ(seen(), all);
        }).join();
        EXPECT_EQ(seen(), all);
    }).join();
}

TEST_F(Threads, WhoIsAskedAboutAnotherThreadKnowsAMaskSetFromOutside) {
    std::atomic<int> stage{0};
    std::atomic<int> id{0};
    std::atomic<unsigned> node{0};
    std::thread t([&] {
        node = home();
        id = tid();
        stage = 1;
        while (stage != 2) usleep(100);
    });
    while (stage != 1) usleep(100);
    EXPECT_EQ(seen(id), all);
    EXPECT_EQ(in_kernel(id), std::vector<int>{all[node]}) << "the question leaves it bound";
    const int other = all[(node + 1) % all.size()];
    ASSERT_TRUE(set_in_kernel(one(other), id));
    EXPECT_EQ(seen(id), std::vector<int>{other});
    EXPECT_EQ(seen(t.native_handle()), std::vector<int>{other});
    EXPECT_EQ(in_kernel(id), std::vector<int>{other});
    stage = 2;
    t.join();
}

TEST_F(Threads, AnAffinityInTheDefaultAttributesIsTheUsers) {
    pthread_attr_t before, with_mask;
    ASSERT_EQ(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&with_mask);
    const Mask mask = one(all.back());
    pthread_attr_setaffinity_np(&with_mask, sizeof mask, &mask);
    ASSERT_EQ(pthread_setattr_default_np(&with_mask), 0);
    std::thread([] {
        EXPECT_EQ(seen(), std::vector<int>{all.back()});
        EXPECT_EQ(in_kernel(), std::vector<int>{all.back()});
        EXPECT_EQ(home(), all.size() - 1);
    }).join();
    EXPECT_EQ(pthread_setattr_default_np(&before), 0);
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&with_mask);
}

TEST_F(Threads, ACreationThatFailsTakesNoPlace) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, std::size_t{200} << 40);  // more than all addresses
    const unsigned before = home_of_next();
    pthread_t p;
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(pthread_create(&p, &attr, [](void*) -> void* { return nullptr; }, nullptr), EAGAIN);
    pthread_attr_destroy(&attr);
    EXPECT_EQ(home_of_next(), before);
}

TEST_F(Threads, WhereBindingIsRefusedMemoryFollowsTheThread) {
    const pid_t child = fork();
    if (child == 0) {
        sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        sock_fprog program{4, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        bool good = true;
        std::vector<std::thread> threads;
        std::atomic<int> ok{0};
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                if (in_kernel() == all && seen() == all && home() < all.size()) ++ok;
            });
        for (auto& t : threads) t.join();
        good = ok == 4 && in_kernel() == all && seen() == all && home() < all.size();
        good = good && sched_setaffinity(0, sizeof all_mask, &all_mask) == -1 && errno == EPERM;
        good = good && system("true") == 0;
        _exit(good ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace numalloc
