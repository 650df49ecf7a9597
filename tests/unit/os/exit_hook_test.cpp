// Code at the end of a thread: in which round of key destructors it runs.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "os/exit_hook.h"

namespace numalloc::os {
namespace {

// Rounds of key destructors that the thread has begun, counted by a key that is called before the hooks' keys.
pthread_key_t key;
int rounds;
int ended_in_second, ended_in_last, never_ended;
int ends;

void end_in_second() { ended_in_second = rounds, ++ends; }
void end_in_last() { ended_in_last = rounds, ++ends; }
void end_never() { never_ended = rounds, ++ends; }

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
    EXPECT_EQ(ended_in_second, 2);
    EXPECT_EQ(ends, 1);
    pthread_key_delete(late);
    pthread_key_delete(key);
}

void end_of_late() {}
void end_of_crowded() {}

// Keys are numbered from 0: by another libc, too, which stores the values of its keys in the same places.
TEST(ExitHook, ItsKeyIsNoneOfTheFirst) {
    pthread_key_t first;
    ASSERT_EQ(pthread_key_create(&first, nullptr), 0);
    ExitHook<1, end_of_late>::make();
    ASSERT_TRUE((ExitHook<1, end_of_late>::set()));
    for (pthread_key_t k = 0; k < 24; ++k) EXPECT_EQ(pthread_getspecific(k), nullptr) << k;
    pthread_key_delete(first);
}

TEST(ExitHook, WorksWhereTheProgramHasTakenAllKeysButOne) {
    std::vector<pthread_key_t> keys;
    for (pthread_key_t k; pthread_key_create(&k, nullptr) == 0;) keys.push_back(k);
    pthread_key_delete(keys.back());
    keys.pop_back();
    ExitHook<1, end_of_crowded>::make();
    EXPECT_TRUE((ExitHook<1, end_of_crowded>::set()));
    for (const pthread_key_t k : keys) pthread_key_delete(k);
}

}  // namespace
}  // namespace numalloc::os
