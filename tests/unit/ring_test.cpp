// The circular array of batches, against a deque, and with many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "heap/central/ring.h"

namespace numalloc {
namespace {

struct alignas(16) Aligned {
    Object object;
};

TEST(Ring, AgreesWithADeque) {
    std::mt19937 random(1);
    for (const unsigned room : {1U, 3U, policy::ring_slots}) {
        Ring ring;
        std::deque<Batch> model;
        Aligned object[64];
        for (int i = 0; i < 100'000; ++i) {
            if (random() % 5 < 3) {
                const Batch list{&object[random() % 64].object, static_cast<std::uint32_t>(1 + random() % 4096)};
                const Batch oldest = ring.push(list, room);
                model.push_back(list);
                if (model.size() > room) {
                    ASSERT_EQ(oldest.head, model.front().head);
                    ASSERT_EQ(oldest.count, model.front().count);
                    model.pop_front();
                } else {
                    ASSERT_EQ(oldest.head, nullptr);
                }
            } else {
                const Batch newest = ring.pop_newest();
                ASSERT_EQ(newest.head == nullptr, model.empty());
                if (model.empty()) continue;
                ASSERT_EQ(newest.head, model.back().head);
                ASSERT_EQ(newest.count, model.back().count);
                model.pop_back();
            }
            std::uint32_t objects = 0;
            for (const Batch& list : model) objects += list.count;
            ASSERT_EQ(ring.size(), model.size());
            ASSERT_EQ(ring.empty(), model.empty());
            ASSERT_EQ(ring.objects(), objects);
        }
    }
}

// Each list is one thread's at any time, and none is lost.
TEST(Ring, ManyThreadsHandOver) {
    constexpr unsigned threads = 4, lists = 64;
    Ring ring;
    Aligned object[lists];
    std::atomic<int> owners[lists] = {};
    std::vector<std::thread> running;
    std::atomic<unsigned> held{0};
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            std::deque<Batch> own;
            for (unsigned i = t; i < lists; i += threads) {
                owners[i].fetch_add(1);
                own.push_back({&object[i].object, i + 1});
            }
            const auto take = [&](Batch list) {
                if (list.head == nullptr) return;
                ASSERT_EQ(list.head, &object[list.count - 1].object);
                ASSERT_EQ(owners[list.count - 1].fetch_add(1), 0);
                own.push_back(list);
            };
            for (int i = 0; i < 50'000; ++i) {
                if (own.empty() || random() % 2 == 0) {
                    take(ring.pop_newest());
                } else {
                    const Batch list = own.front();
                    own.pop_front();
                    owners[list.count - 1].fetch_sub(1);
                    take(ring.push(list, 8));
                }
            }
            held += unsigned(own.size());
        });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(held + ring.size(), lists);
}

}  // namespace
}  // namespace numalloc
