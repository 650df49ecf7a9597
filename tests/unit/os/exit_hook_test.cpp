// Code at the end of a thread: in which round of key destructors it runs.
#include <gtest/gtest.h>

#include <thread>

#include "os/exit_hook.h"

namespace numalloc::os {
namespace {

// Rounds of key destructors that the thread has completed, counted by a key that is made after the hooks' keys.
pthread_key_t key;
int rounds;
int ended_in_second, ended_in_last, never_ended;
int ends;

void end_in_second() { ended_in_second = rounds + 1, ++ends; }
void end_in_last() { ended_in_last = rounds + 1, ++ends; }
void end_never() { never_ended = rounds + 1, ++ends; }

using Second = ExitHook<2, end_in_second>;
using Last = ExitHook<PTHREAD_DESTRUCTOR_ITERATIONS, end_in_last>;
using Never = ExitHook<1, end_never>;

template <class Body>
void run_thread(Body body) {
    rounds = ends = ended_in_second = ended_in_last = never_ended = 0;
    std::thread([&] {
        pthread_setspecific(key, &key);
        body();
    }).join();
}

TEST(ExitHook, EndsInItsRoundAndOnce) {
    EXPECT_FALSE(Second::set()) << "without a key";
    Second::make();
    Last::make();
    Last::make();
    ASSERT_EQ(pthread_key_create(&key,
                                 [](void* value) {
                                     if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(key, value);
                                 }),
              0);

    run_thread([] {
        EXPECT_TRUE(Second::set());
        EXPECT_TRUE(Last::set());
        EXPECT_FALSE(Never::set());
    });
    EXPECT_EQ(ended_in_second, 2);
    EXPECT_EQ(ended_in_last, 4);
    EXPECT_EQ(never_ended, 0);
    EXPECT_EQ(ends, 2);

    run_thread([] {});
    EXPECT_EQ(ends, 0) << "a thread that set no hook";

    // As a thread whose first malloc is in a destructor.
    static pthread_key_t late;
    ASSERT_EQ(pthread_key_create(&late, [](void*) { Second::set(); }), 0);
    run_thread([] { pthread_setspecific(late, &late); });
    EXPECT_EQ(ended_in_second, 3);
    EXPECT_EQ(ends, 1);
    pthread_key_delete(late);
    pthread_key_delete(key);
}

}  // namespace
}  // namespace numalloc::os
