// Threads that start, end and change their affinity while another thread forks.
#include <dlfcn.h>
#include <semaphore.h>
#include <sys/mman.h>

#include <functional>

#include "heap/thread/attach.h"
#include "placement/internal.h"
#include "placement/memory_home.h"
#include "support/made_up_heap.h"
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
    void TearDown() override { EXPECT_EQ(sched_setaffinity(0, sizeof all_mask, &all_mask), 0); }
};

// Forks, does `work` in the child, and expects its result to be 0.
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

int has_all_cpus() { return (in_kernel() == all ? 0 : 1) + (seen() == all ? 0 : 2); }

// Runs `work` in a thread that starts and ends while the fork is in progress.
template <class Work>
void beside(Work work) {
    const auto run = [](void* p) -> void* {
        (*static_cast<Work*>(p))();
        return nullptr;
    };
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, run, &work), 0);
    pthread_join(thread, nullptr);
}

// Starts and ends threads; 0 if all is well.
int use_threads() {
    bool good = in_kernel() == all && seen() == all && seen(pthread_self()) == all;
    for (int i = 0; i < 1000; ++i)
        std::thread([&] {
            good = good && in_kernel().size() == 1 && seen() == all && seen(pthread_self()) == all;
        }).join();
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
        beside([&] { start_end_and_ask(forking, forking_tid); });
    };
    fork_and(use_threads);
}

TEST_F(ForkBeside, AThreadsHeapFollowsItsMaskDuringAFork) {
    testing::start_heap(static_cast<unsigned>(all.size()));
    sem_t attached, forking;
    for (sem_t* s : {&attached, &forking}) sem_init(s, 0, 0);
    std::thread other([&] {
        const Mask first = one(all.front()), last = one(all.back());
        EXPECT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
        EXPECT_TRUE(attach_thread(placement::home_node()));
        sem_post(&attached);
        while (sem_wait(&forking) != 0) {}
        EXPECT_EQ(sched_setaffinity(0, sizeof last, &last), 0);
        detach_thread();
    });
    while (sem_wait(&attached) != 0) {}
    while_it_forks = [&] {
        sem_post(&forking);
        other.join();
    };
    fork_and(has_all_cpus);
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

// Another thread has changed the mask in the kernel, and not yet the record.
TEST_F(ForkBeside, TheChildsThreadsObeyAMaskThatWasBeingSet) {
    ASSERT_TRUE(set_in_kernel(all_mask));
    placement::detail::current->whole = true;
    const Mask last = one(all.back());
    while_it_forks = [&, forking = tid()] { EXPECT_TRUE(set_in_kernel(last, forking)); };
    fork_and([] {
        const std::vector<int> wanted{all.back()};
        std::vector<int> in_thread;
        std::thread([&] { in_thread = seen(); }).join();
        return (in_thread == wanted ? 0 : 1) + (seen() == wanted ? 0 : 2);
    });
    placement::detail::current->whole = false;
}

TEST_F(ForkBeside, AMaskThatIsWidenedDuringAForkIsTheChilds) {
    const Mask first = one(all.front());
    ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    while_it_forks = [forking = pthread_self()] {
        beside([&] { EXPECT_EQ(pthread_setaffinity_np(forking, sizeof all_mask, &all_mask), 0); });
    };
    fork_and(has_all_cpus);
    EXPECT_EQ(seen(), all);
}

TEST_F(ForkBeside, AMaskFromOutsideIsTheChildsIfItIsNoticedDuringAFork) {
    const Mask first = one(all.front());
    ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    ASSERT_TRUE(set_in_kernel(all_mask));
    while_it_forks = [forking = pthread_self()] { beside([&] { EXPECT_EQ(seen(forking), all); }); };
    fork_and(has_all_cpus);
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

// A thread that holds placement's lock does not go on before the fork is over.
TEST_F(ForkBeside, AThreadIsBoundAtItsNextSlowPathIfTheLockWasNotFree) {
    sem_t begin, locked, over;
    for (sem_t* s : {&begin, &locked, &over}) sem_init(s, 0, 0);
    std::thread other([&]() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        while (sem_wait(&begin) != 0) {}
        placement::process.lock.lock();
        sem_post(&locked);
        while (sem_wait(&over) != 0) {}
        placement::process.lock.unlock();
    });
    after_the_fork = [&] {
        sem_post(&begin);
        while (sem_wait(&locked) != 0) {}
    };
    const pid_t child = fork();
    if (child == 0) _exit(has_all_cpus());
    EXPECT_EQ(in_kernel(), all);
    sem_post(&over);
    other.join();
    home();
    EXPECT_EQ(in_kernel().size(), 1U);
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
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

// The child of a fork within a handler of a fork goes on with the outer one.
TEST_F(ForkBeside, TheInnerChildForksToo) {
    static bool is_inner = false;
    static int inner_status = 1;
    while_it_forks = [] {
        const pid_t child = fork();
        if (child != 0) {
            waitpid(child, &inner_status, 0);
            return;
        }
        is_inner = true;
        std::thread([] {}).join();
    };
    const pid_t child = fork();
    if (child == 0) _exit(has_all_cpus());
    int status = 1;
    waitpid(child, &status, 0);
    if (is_inner) _exit(status == 0 ? 0 : 7);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(inner_status, 0);
}

// A library that replaces madvise(), and whose lock its fork handlers protect.
std::atomic<bool> protects{false};
pthread_mutex_t librarys = PTHREAD_MUTEX_INITIALIZER;
void lock_librarys() {
    if (protects) pthread_mutex_lock(&librarys);
}
void unlock_librarys() {
    if (protects) pthread_mutex_unlock(&librarys);
}

TEST_F(ForkBeside, TheChildNeedsNoLockOfALibraryWithRegisteredMemory) {
    ASSERT_EQ(pthread_atfork(lock_librarys, unlock_librarys, unlock_librarys), 0);
    protects = true;
    fork_and(has_all_cpus);
    protects = false;
}

}  // namespace
}  // namespace numalloc

extern "C" int madvise(void* p, std::size_t bytes, int advice) noexcept {
    numalloc::lock_librarys();
    const long result = syscall(SYS_madvise, p, bytes, advice);
    numalloc::unlock_librarys();
    return static_cast<int>(result);
}
