#include "os/thread_life.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace numalloc::os {
namespace {

void lock_robust(pthread_mutex_t* mutex) {
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &robust);
    pthread_mutex_lock(mutex);
}

// The mutexes in the calling thread's list, which the kernel would mark.
int held() {
    robust_list_head* head = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(syscall(SYS_get_robust_list, 0, &head, &bytes), 0);
    int count = 0;
    for (const robust_list* at = head->list.next; at != &head->list; at = at->next) ++count;
    return count;
}

TEST(ThreadLife, ShowsOnceThatItsOwnerHasEnded) {
    ThreadLife life;
    std::thread([&] { life.begin(); }).join();
    EXPECT_TRUE(life.has_ended());
    EXPECT_FALSE(life.has_ended());
}

TEST(ThreadLife, DoesNotShowAnOwnerThatIsAlive) {
    ThreadLife life;
    life.begin();
    std::thread([&] { EXPECT_FALSE(life.has_ended()); }).join();
    life.end();
}

TEST(ThreadLife, AfterItsEndTheThreadsDeathDoesNotShow) {
    ThreadLife life;
    std::thread([&] {
        life.begin();
        EXPECT_EQ(held(), 1);
        life.end();
        EXPECT_EQ(held(), 0);
    }).join();
    EXPECT_FALSE(life.has_ended());
}

// The program's mutexes are linked before and behind its own.
TEST(ThreadLife, EndsBetweenTwoRobustMutexes) {
    ThreadLife life;
    pthread_mutex_t older;
    pthread_mutex_t newer;
    std::thread([&] {
        lock_robust(&older);
        life.begin();
        lock_robust(&newer);
        EXPECT_EQ(held(), 3);
        life.end();
        EXPECT_EQ(held(), 2);
    }).join();
    EXPECT_FALSE(life.has_ended());
    for (pthread_mutex_t* mutex : {&older, &newer}) {
        EXPECT_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
        pthread_mutex_unlock(mutex);
    }
}

TEST(ThreadLife, EndsBesideAMutexThatIsUnmapped) {
    ThreadLife life;
    std::thread([&] {
        life.begin();
        void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        lock_robust(static_cast<pthread_mutex_t*>(page));
        munmap(page, 4096);
        life.end();
    }).join();
    EXPECT_FALSE(life.has_ended());
#if !defined(__SANITIZE_THREAD__)  // which does not know that begin() makes the mutex anew
    std::thread([&] { life.begin(); }).join();
    EXPECT_TRUE(life.has_ended());
#endif
}

}  // namespace
}  // namespace numalloc::os
