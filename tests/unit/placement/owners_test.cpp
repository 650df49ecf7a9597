// Owners of partitioned memory: promises to threads that do not exist yet, numbers that threads give
// themselves, and what moves a number's node.
#include "placement/owners.h"

#include "placement/memory_home.h"
#include "support/threads_fixture.h"

namespace numalloc {
namespace {

using placement::most_owners;

NodeId node_of(int owner) {
    bool out_of_memory, moved;
    const NodeId node = placement::node_of_owner(owner, &out_of_memory, &moved);
    EXPECT_FALSE(out_of_memory);
    return node;
}

class Owners : public Threads {};

// Runs `body(i)` in `count` threads that live at the same time.
template <class Body>
void together(int count, Body body) {
    std::atomic<int> running{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            body(i);
            ++running;
            while (running < count) sched_yield();
        });
    for (auto& t : threads) t.join();
}

TEST_F(Owners, OutOfRangeIsNobody) {
    for (int bad : {-1, INT32_MIN, most_owners, INT32_MAX}) {
        EXPECT_EQ(node_of(bad), no_node) << bad;
        bool moved;
        EXPECT_FALSE(placement::register_owner(bad, &moved));
    }
    EXPECT_NE(node_of(most_owners - 1), no_node);
}

// All numbers there are, in one question; threads begin and end while it is answered.
TEST_F(Owners, ThreadsDoNotWaitForAllNumbers) {
    std::atomic<bool> answered{false};
    std::atomic<int> meanwhile{0};
    std::thread others([&] {
        do {
            std::thread([] { EXPECT_NE(placement::home_node(), no_node); }).join();
            ++meanwhile;
        } while (!answered);
    });
    while (meanwhile == 0) sched_yield();
    EXPECT_NE(node_of(most_owners - 1), no_node);
    answered = true;
    others.join();
    // What each number was told is the policy's word: the nodes in turn, as many numbers on each.
    std::vector<int> numbers(all.size());
    for (int i = most_owners - 4096; i < most_owners; ++i) ++numbers[node_of(i).value];
    for (int n : numbers) EXPECT_NEAR(n, 4096.0 / static_cast<double>(all.size()), 64);
}

TEST_F(Owners, APromiseIsKeptWhicheverWasAskedFirst) {
    int next = -1;
    std::thread([&] { next = placement::owner_of_caller() + 1; }).join();
    constexpr int count = 9;
    std::vector<NodeId> promised(count);
    for (int i = count - 1; i >= 0; --i) promised[i] = node_of(next + i);
    for (int i = 0; i < count; ++i) EXPECT_EQ(node_of(next + i), promised[i]) << "the same answer each time";
    together(count, [&](int) {
        const int self = placement::owner_of_caller();
        EXPECT_EQ(placement::home_node(), promised[static_cast<std::size_t>(self - next)]) << self;
        EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
    });
    for (int i = 0; i < count; ++i) EXPECT_EQ(node_of(next + i), promised[i]) << "also when the thread has ended";

    // One after the other, the policy alone would put all on one node.
    next += count;
    for (int i = 0; i < count; ++i) promised[i] = node_of(next + i);
    for (int i = 0; i < count; ++i)
        std::thread([&] { EXPECT_EQ(placement::home_node(), promised[static_cast<std::size_t>(i)]) << i; }).join();
}

TEST_F(Owners, PromisesAreSpreadAsThreadsAre) {
    int next = -1;
    std::thread([&] { next = placement::owner_of_caller() + 1; }).join();
    std::vector<int> on(all.size());
    for (unsigned i = 0; i < 8 * all.size(); ++i) ++on[node_of(next + 1000 + static_cast<int>(i)).value];
    for (unsigned n = 0; n < all.size(); ++n) EXPECT_EQ(on[n], 8) << n;
}

TEST_F(Owners, AThreadGoesToTheNodeOfTheNumberThatItTakes) {
    constexpr int first = 40000;
    std::vector<NodeId> known(6);
    for (int i = 0; i < 6; ++i) known[i] = node_of(first + i);
    together(6, [&](int i) {
        bool moved;
        ASSERT_TRUE(placement::register_owner(first + 5 - i, &moved));
        EXPECT_EQ(placement::owner_of_caller(), first + 5 - i);
        EXPECT_EQ(placement::home_node(), known[static_cast<std::size_t>(5 - i)]);
        EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
    });
}

TEST_F(Owners, TheUsersAffinityWins) {
    for (unsigned n = 0; n < all.size(); ++n) {
        const int number = 50000 + static_cast<int>(n);
        const unsigned promised = node_of(number).value;
        const unsigned other = (promised + 1) % static_cast<unsigned>(all.size());
        std::thread([&] {
            const Mask mask = one(all[other]);
            ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
            bool moved;
            ASSERT_TRUE(placement::register_owner(number, &moved));
            EXPECT_FALSE(moved);
            EXPECT_EQ(home(), other);
        }).join();
    }
}

TEST_F(Owners, ANumberFollowsItsThread) {
    std::thread([] {
        bool moved;
        ASSERT_TRUE(placement::register_owner(30000, &moved));
        for (unsigned n = 0; n < all.size(); ++n) {
            ASSERT_EQ(placement::rehome_thread(pthread_self(), static_cast<unsigned>(n)), 0);
            EXPECT_EQ(home(), n);
            EXPECT_EQ(in_kernel(), std::vector<int>{all[n]});
            EXPECT_EQ(seen(), all) << "does not show";
            EXPECT_EQ(node_of(30000).value, n);
        }
        const Mask mask = one(all[0]);
        ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
        EXPECT_EQ(node_of(30000).value, 0u);
        EXPECT_EQ(placement::rehome_thread(pthread_self(), 1), ENXIO) << "the user does not allow it";
    }).join();
}

TEST_F(Owners, AnotherThreadCanBeMoved) {
    std::atomic<int> stage{0};
    std::atomic<unsigned> target{0};
    std::thread other([&] {
        target = (home() + 1) % static_cast<unsigned>(all.size());
        stage = 1;
        while (stage != 2) sched_yield();
        EXPECT_EQ(home(), target);
        EXPECT_EQ(in_kernel(), std::vector<int>{all[home()]});
        stage = 3;
        while (stage != 4) sched_yield();
    });
    while (stage != 1) sched_yield();
    ASSERT_EQ(placement::rehome_thread(other.native_handle(), target), 0);
    stage = 2;
    while (stage != 3) usleep(100);
    stage = 4;
    const pthread_t handle = other.native_handle();
    other.join();
    EXPECT_EQ(placement::rehome_thread(handle, 0), ESRCH);
}

TEST_F(Owners, AForkedChildKeepsItsWord) {
    const NodeId before = node_of(20000);
    const pid_t child = fork();
    if (child == 0) {
        if (placement::owner_of_caller() != 0) _exit(1);
        if (node_of(20000) != before) _exit(2);
        NodeId promised = node_of(1);
        NodeId at = no_node;
        std::thread([&] { at = placement::home_node(); }).join();
        _exit(at == promised ? 0 : 3);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// ---- Where malloc's memory comes from.

MemoryPlacement said(const char* text) {
    MemoryPlacement m;
    EXPECT_TRUE(parse_memory_placement(text, m)) << text;
    return m;
}

TEST_F(Owners, MemoryComesFromWhereTheThreadSays) {
    std::thread([] {
        const MemoryPlacement interleave = said("interleave"), preferred = said("preferred:1"), bind = said("bind:0");
        EXPECT_EQ(placement::memory_home(), placement::home_node());
        EXPECT_EQ(placement::thread_spill_limit(), nullptr);
        ASSERT_EQ(placement::set_thread_memory(&interleave), 0);
        EXPECT_EQ(placement::memory_home(), os::topology().interleaved());
        EXPECT_EQ(os::topology().interleaved().value, all.size());
        ASSERT_EQ(placement::set_thread_memory(&preferred), 0);
        EXPECT_EQ(placement::memory_home(), NodeId{1});
        EXPECT_EQ(placement::thread_spill_limit(), nullptr);
        ASSERT_EQ(placement::set_thread_memory(&bind), 0);
        EXPECT_EQ(placement::memory_home(), NodeId{0});
        ASSERT_NE(placement::thread_spill_limit(), nullptr);
        EXPECT_EQ(placement::thread_spill_limit()->count(), 1u);
        std::thread([] {
            EXPECT_EQ(placement::memory_home(), placement::home_node()) << "it is not inherited";
        }).join();
        ASSERT_EQ(placement::set_thread_memory(nullptr), 0);
        EXPECT_EQ(placement::memory_home(), placement::home_node());
    }).join();
}

TEST_F(Owners, MemoryOfAListComesFromItsNearestNode) {
    const MemoryPlacement both = said("bind:0-1");
    together(4, [&](int) {
        ASSERT_EQ(placement::set_thread_memory(&both), 0);
        EXPECT_TRUE(home() > 1 || placement::memory_home() == placement::home_node());
        EXPECT_LE(placement::memory_home().value, 1u);
    });
}

TEST_F(Owners, NodesThatAreNotThere) {
    const MemoryPlacement wrong = said("preferred:77"), some = said("bind:0,77");
    EXPECT_EQ(placement::set_thread_memory(&wrong), EINVAL);
    EXPECT_EQ(placement::set_thread_memory(&some), EINVAL);
    EXPECT_EQ(placement::memory_home(), placement::home_node());
}

}  // namespace
}  // namespace numalloc
