// binding=auto with real threads, on a machine whose nodes have one CPU each: who is bound, when, and who is not.
#include <algorithm>
#include <cerrno>
#include <functional>

#include "os/filter.h"
#include "placement/owners.h"
#include "support/threads_fixture.h"

namespace numalloc {
namespace {

constexpr int later_try = 8;  // slow paths, after a try without success
constexpr int of_main = 16;   // slow paths until its first try
constexpr int many = 4 * later_try;

std::vector<int> cpu_of(unsigned node) { return {all[node]}; }

class FirstUse : public Threads {
protected:
    static void SetUpTestSuite() { start("auto"); }
};

// Threads that live until end(). Each runs `first` when it starts; run() has one of them run something.
class Living {
public:
    explicit Living(
        unsigned count, std::function<void(unsigned)> first = [](unsigned) { (void)home(); })
        : work_(count) {
        for (unsigned i = 0; i < count; ++i)
            threads_.emplace_back([this, i, first] {
                first(i);
                answer();
                for (;;) {
                    std::function<void()> work;
                    {
                        std::unique_lock lock(mutex_);
                        changed_.wait(lock, [&] { return end_ || work_[i]; });
                        if (!work_[i]) return;
                        work = std::move(work_[i]);
                        work_[i] = nullptr;
                    }
                    work();
                    answer();
                }
            });
        wait(count);
    }
    ~Living() { end(); }
    Living(const Living&) = delete;
    Living& operator=(const Living&) = delete;

    void run(unsigned i, std::function<void()> work) {
        {
            std::lock_guard lock(mutex_);
            work_[i] = std::move(work);
        }
        changed_.notify_all();
        wait(1);
    }
    void end() {
        {
            std::lock_guard lock(mutex_);
            end_ = true;
        }
        changed_.notify_all();
        for (auto& t : threads_) t.join();
        threads_.clear();
    }

private:
    void answer() {
        std::lock_guard lock(mutex_);
        ++answers_;
        changed_.notify_all();
    }
    void wait(unsigned answers) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return answers_ == answers; });
        answers_ = 0;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::function<void()>> work_;
    std::vector<std::thread> threads_;
    unsigned answers_ = 0;
    bool end_ = false;
};

void use_memory(int slow_paths) {
    for (int i = 0; i < slow_paths; ++i) (void)home();
}

TEST_F(FirstUse, AThreadKeepsItsMaskUntilItAllocates) {
    std::thread([] {
        EXPECT_EQ(in_kernel(), all);
        const unsigned node = home();
        EXPECT_EQ(in_kernel(), cpu_of(node));
        EXPECT_EQ(seen(), all);
        EXPECT_EQ(home(), node);
    }).join();
}

TEST_F(FirstUse, NoMoreThreadsAreBoundThanTheNodesHaveCpus) {
    const auto count = static_cast<unsigned>(3 * all.size());
    std::vector<std::vector<int>> masks(count);
    Living threads(count, [&](unsigned i) {
        use_memory(many);
        masks[i] = in_kernel();
        EXPECT_EQ(seen(), all);
        EXPECT_LT(home(), all.size());
    });
    for (unsigned n = 0; n < all.size(); ++n) EXPECT_EQ(std::count(masks.begin(), masks.end(), cpu_of(n)), 1) << n;
    EXPECT_EQ(std::count(masks.begin(), masks.end(), all), 2 * static_cast<long>(all.size()));
}

TEST_F(FirstUse, AThreadWithoutRoomIsBoundWhenThereIsSome) {
    Living first(static_cast<unsigned>(all.size()));
    Living second(1);
    second.run(0, [] {
        EXPECT_EQ(in_kernel(), all);
        use_memory(later_try);  // there is no room
        EXPECT_EQ(in_kernel(), all);
    });
    first.end();
    second.run(0, [] {
        use_memory(2 * later_try - 1);
        EXPECT_EQ(in_kernel(), all) << "the rests grow";
        const unsigned node = home();
        EXPECT_EQ(in_kernel(), cpu_of(node));
        EXPECT_EQ(seen(), all);
    });
}

TEST_F(FirstUse, ThreadsThatUsersBindTakeRoom) {
    Living users(1, [](unsigned) {  // it does not allocate
        const Mask mask = one(all[0]);
        ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
        EXPECT_EQ(seen(), cpu_of(0));
    });
    std::vector<std::vector<int>> masks(all.size());
    Living others(static_cast<unsigned>(all.size()), [&](unsigned i) {
        (void)home();
        masks[i] = in_kernel();
    });
    EXPECT_EQ(std::count(masks.begin(), masks.end(), cpu_of(0)), 0);
    EXPECT_EQ(std::count(masks.begin(), masks.end(), all), 1);
}

TEST_F(FirstUse, AThreadFollowsTheOneBeforeIt) {
    std::thread([] {
        unsigned node = 0;
        std::thread([&] { node = home(); }).join();
        for (int i = 0; i < 100; ++i)
            std::thread([&] {
                set_in_kernel(one(all[static_cast<unsigned>(i) % all.size()]));  // it runs there now
                set_in_kernel(all_mask);
                EXPECT_EQ(home(), node);
                EXPECT_EQ(in_kernel(), cpu_of(node));
            }).join();
    }).join();
}

TEST_F(FirstUse, MemoryOfAThreadWithoutRoomFollowsIt) {
    Living first(static_cast<unsigned>(all.size()));
    Living second(1, [](unsigned) {
        for (unsigned n = 0; n < all.size(); ++n) {
            (void)home();
            ASSERT_TRUE(set_in_kernel(one(all[n])));
            EXPECT_EQ(home(), n);
        }
        ASSERT_TRUE(set_in_kernel(all_mask));
    });
}

TEST_F(FirstUse, AThreadThatABoundOneStartsHasTheUsersMask) {
    std::thread([] {
        (void)home();
        ASSERT_EQ(in_kernel().size(), 1u);
        std::thread([] {
            EXPECT_EQ(in_kernel(), all);
            EXPECT_EQ(seen(), all);
        }).join();
    }).join();
}

TEST_F(FirstUse, AMaskThatIsSetBeforeCounts) {
    for (unsigned n = 0; n < all.size(); ++n)
        std::thread([n] {
            ASSERT_TRUE(set_in_kernel(one(all[n])));
            EXPECT_EQ(home(), n);
            EXPECT_EQ(seen(), cpu_of(n));
            ASSERT_EQ(sched_setaffinity(0, sizeof all_mask, &all_mask), 0);
            EXPECT_EQ(in_kernel(), all);
            const unsigned node = home();
            EXPECT_EQ(in_kernel(), cpu_of(node));
        }).join();
}

TEST_F(FirstUse, AThreadThatMustKeepItsMaskIsNotBoundAgain) {
    std::thread([] {
        (void)home();
        const auto bound = in_kernel();
        ASSERT_EQ(bound.size(), 1u);
        const auto install = [](const void* refused) -> long {
            EXPECT_EQ(in_kernel(), all);
            if (refused != nullptr) return -EFAULT;
            os::filters.fetch_add(1);
            return 0;
        };
        EXPECT_EQ(placement::call_with_users_masks(install, "refused"), -EFAULT);
        EXPECT_EQ(in_kernel(), bound);
        EXPECT_EQ(placement::call_with_users_masks(install, nullptr), 0);
        os::filters.fetch_sub(1);
        use_memory(many);
        EXPECT_EQ(in_kernel(), all);
    }).join();
}

TEST_F(FirstUse, AThreadThatOthersAskAboutIsBound) {
    std::atomic<int> owner{-1};
    Living asked(1, [&](unsigned) { owner = placement::owner_of_caller(); });
    NodeId node;
    std::thread([&] {
        bool out_of_memory = false;
        bool moved = false;
        node = placement::node_of_owner(owner, &out_of_memory, &moved);
    }).join();
    asked.run(0, [&] {
        EXPECT_EQ(in_kernel(), cpu_of(node.value));
        EXPECT_EQ(home(), node.value);
    });
}

TEST_F(FirstUse, AThreadThatOthersAskAboutKeepsAMaskFromOutside) {
    for (unsigned n = 0; n < all.size(); ++n) {
        std::atomic<int> owner{-1};
        Living asked(1, [&](unsigned) { owner = placement::owner_of_caller(); });
        asked.run(0, [n] { ASSERT_TRUE(set_in_kernel(one(all[n]))); });
        std::thread([&] {
            bool out_of_memory = false;
            bool moved = false;
            (void)placement::node_of_owner(owner, &out_of_memory, &moved);
        }).join();
        asked.run(0, [n] { EXPECT_EQ(in_kernel(), cpu_of(n)); });
    }
}

TEST_F(FirstUse, WhoStartsAThreadOrAChildIsNotBoundMeanwhile) {
    std::thread([] {
        {
            const placement::FirstUseHold hold;
            use_memory(many);
            EXPECT_EQ(in_kernel(), all);
        }
        {
            const placement::AsTheUserSetIt widened;
            use_memory(many);
            EXPECT_EQ(in_kernel(), all);
        }
        const unsigned node = home();
        EXPECT_EQ(in_kernel(), cpu_of(node));
    }).join();
}

TEST_F(FirstUse, AChildBetweenVforkAndExecDoesNotBindItsParent) {
    std::thread([] {
        const pid_t child = vfork();
        if (child == 0) {
            (void)home();
            _exit(0);
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(in_kernel(), all);
        const unsigned node = home();
        EXPECT_EQ(in_kernel(), cpu_of(node));
    }).join();
}

TEST_F(FirstUse, AForkedChildHasTheUsersMask) {
    std::thread([] {
        (void)home();
        const pid_t child = fork();
        if (child == 0) {
            use_memory(many);  // it is alone
            _exit(in_kernel() == all && seen() == all ? 0 : 1);
        }
        int status = 1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(in_kernel().size(), 1u);
    }).join();
}

// In a child: main of this process must not take room from the other tests. Beside another thread `all_but_one` must
// not bind main yet; one more use must.
void expect_main_is_bound_after(const std::function<void()>& all_but_one) {
    const pid_t child = fork();
    if (child == 0) {
        use_memory(many);
        bool good = in_kernel() == all;  // it is alone
        std::thread([] {}).join();
        use_memory(many);
        good = good && in_kernel() == all;  // again
        std::atomic<bool> end{false};
        std::thread other([&] {
            while (!end) sched_yield();
        });
        all_but_one();
        good = good && in_kernel() == all;
        const unsigned node = home();
        good = good && in_kernel() == cpu_of(node) && seen() == all;
        end = true;
        other.join();
        _exit(good ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(FirstUse, TheInitialThreadIsBoundWhenItAllocatesAsOthersDo) {
    expect_main_is_bound_after([] { use_memory(of_main - 1); });
}

// A malloc of much counts as several, but not as more than the initial thread's first try takes.
TEST_F(FirstUse, WhoWantsMuchIsBoundSooner) {
    expect_main_is_bound_after([] { (void)placement::home_node(64 * KiB * (of_main - 2)); });

    Living first(static_cast<unsigned>(all.size()));
    Living second(1);
    constexpr Bytes very_much = Bytes{1} << 40;
    second.run(0, [] {
        for (int tries = 0; tries < 2; ++tries) (void)placement::home_node(very_much);  // there is no room
        EXPECT_EQ(in_kernel(), all);
    });
    first.end();
    second.run(0, [] {
        (void)placement::home_node(very_much);
        EXPECT_EQ(in_kernel(), all) << "16 slow paths of 32";
        const NodeId node = placement::home_node(very_much);
        EXPECT_EQ(in_kernel(), cpu_of(node.value));
    });
}

}  // namespace
}  // namespace numalloc
