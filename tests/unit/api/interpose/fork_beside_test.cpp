// Threads that start, end and change their affinity while another thread forks.
#include <dlfcn.h>
#include <semaphore.h>

#include <functional>

#include "placement/internal.h"
#include "placement/memory_home.h"
#include "support/threads_fixture.h"

namespace numalloc {
namespace {

// Run while a fork is in progress: libc calls them after our prepare handler and before our handler in the parent,
// because they are registered first.
std::function<void()> while_it_forks, after_the_fork;
void prepare_after_ours() {
    if (while_it_forks) std::exchange(while_it_forks, nullptr)();
}
void parent_before_ours() {
    if (after_the_fork) std::exchange(after_the_fork, nullptr)();
}

class ForkBeside : public Threads {
protected:
    static void SetUpTestSuite() {
        using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
        const auto libcs = reinterpret_cast<Register>(dlsym(RTLD_NEXT, "__register_atfork"));
        ASSERT_NE(libcs, nullptr);
        ASSERT_EQ(libcs(prepare_after_ours, parent_before_ours, nullptr, nullptr), 0);
        start("interleave");
    }
};

// Forks, does `child` in the child, and expects its result to be 0.
template <class Child>
void fork_and(Child work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(while_it_forks);
    EXPECT_EQ(in_kernel().size(), 1U) << "bound again";
}

// Starts and ends threads; 0 if all is well.
int use_threads() {
    bool good = in_kernel() == all && seen() == all && seen(pthread_self()) == all;
    for (int i = 0; i < 1000; ++i)
        std::thread([&] { good = good && in_kernel().size() == 1 && seen() == all && seen(pthread_self()) == all; }).join();
    MemoryPlacement there;
    there.kind = MemoryPlacement::Kind::preferred;
    there.nodes.add(0);
    return good && placement::set_thread_memory(&there) == 0 ? 0 : 1;
}

// All that placement does for threads. Each call is made while the gate is closed: one that waited for the fork would
// deadlock with it.
void start_end_and_ask(pthread_t other, int other_tid) {
    std::thread([] { EXPECT_EQ(in_kernel().size(), 1U); }).join();
    thrd_t c11;
    ASSERT_EQ(thrd_create(&c11, [](void*) { return 0; }, nullptr), thrd_success);
    thrd_join(c11, nullptr);
    EXPECT_EQ(seen(), all);
    EXPECT_EQ(seen(other), all);
    EXPECT_EQ(seen(other_tid), all);
    const Mask last = one(all.back());
    EXPECT_EQ(sched_setaffinity(0, sizeof last, &last), 0);
    EXPECT_EQ(pthread_setaffinity_np(other, sizeof last, &last), 0);
    EXPECT_EQ(seen(other), std::vector<int>{all.back()});
    EXPECT_EQ(pthread_setaffinity_np(other, sizeof all_mask, &all_mask), 0);
    EXPECT_EQ(sched_setaffinity(0, sizeof all_mask, &all_mask), 0);
    EXPECT_EQ(placement::rehome_thread(pthread_self(), 1), 0);
    MemoryPlacement there;
    there.kind = MemoryPlacement::Kind::preferred;
    there.nodes.add(1);
    EXPECT_EQ(placement::set_thread_memory(&there), 0);
    EXPECT_EQ(placement::set_thread_memory(nullptr), 0);
}

TEST_F(ForkBeside, NoThreadWaitsForAFork) {
    while_it_forks = [forking = pthread_self(), forking_tid = tid()] {
        pthread_t beside;
        struct Names {
            pthread_t thread;
            int tid;
        } names{forking, forking_tid};
        const auto work = [](void* n) -> void* {
            start_end_and_ask(static_cast<Names*>(n)->thread, static_cast<Names*>(n)->tid);
            return nullptr;
        };
        ASSERT_EQ(pthread_create(&beside, nullptr, work, &names), 0);
        pthread_join(beside, nullptr);
    };
    fork_and(use_threads);
}

// What a thread does that a fork stops with the lock held: no list of the records can be followed.
class HalfChanged {
public:
    HalfChanged() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS : first_(placement::process.records.first()), next_(first_->next) {
        placement::process.lock.lock();
        first_->next = first_;
        first_->next_of_tid = first_->next_of_handle = first_->next_of_owner = first_;
    }
    ~HalfChanged() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        first_->next = next_;
        first_->next_of_tid = first_->next_of_handle = first_->next_of_owner = nullptr;
        placement::process.lock.unlock();
    }

private:
    placement::ThreadRecord* first_;
    placement::ThreadRecord* next_;
};

TEST_F(ForkBeside, AForkMayMeetAnyStepOfAnotherThreadsChange) {
    sem_t begin, changed, forked;
    for (sem_t* s : {&begin, &changed, &forked}) sem_init(s, 0, 0);
    std::thread other([&] {
        while (sem_wait(&begin) != 0) {}
        const HalfChanged state;
        sem_post(&changed);
        while (sem_wait(&forked) != 0) {}
    });
    while_it_forks = [&] {
        sem_post(&begin);
        while (sem_wait(&changed) != 0) {}
    };
    after_the_fork = [&] {
        sem_post(&forked);
        other.join();
    };
    fork_and(use_threads);
    EXPECT_EQ(seen(), all);
}

TEST_F(ForkBeside, ManyForksBesideThreadsThatComeAndGo) {
    std::atomic<bool> stop{false};
    const pthread_t forking = pthread_self();
    std::vector<std::thread> beside;
    for (int t = 0; t < 3; ++t)
        beside.emplace_back([&] {
            while (!stop) {
                std::thread([] {}).join();
                pthread_setaffinity_np(forking, sizeof all_mask, &all_mask);
            }
        });
    for (int i = 0; i < 200; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            std::vector<int> in_thread;
            std::thread([&] { in_thread = seen(); }).join();
            _exit((in_thread == all ? 0 : 1) + (seen() == all ? 0 : 2));
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    stop = true;
    for (std::thread& thread : beside) thread.join();
}

TEST_F(ForkBeside, AForkWithinAForkLeavesTheParentBound) {
    while_it_forks = [] {
        const pid_t child = fork();
        if (child == 0) _exit(in_kernel() == all ? 0 : 1);
        EXPECT_EQ(in_kernel(), all) << "the outer fork goes on";
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    };
    fork_and(use_threads);
}

}  // namespace
}  // namespace numalloc
