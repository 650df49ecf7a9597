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
    for (const unsigned room : {1U, 3U, policy::rings::slots}) {
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

std::uint32_t length_of(const Object* object) {
    std::uint32_t length = 0;
    for (; object != nullptr; object = object->next) ++length;
    return length;
}

TEST(Ring, JoinsAShortListAndTheNewest) {
    Ring ring;
    Aligned object[4] = {};
    object[0].object.next = &object[1].object;
    object[2].object.next = &object[3].object;
    const Batch first{&object[0].object, 2}, second{&object[2].object, 2};
    EXPECT_FALSE(ring.join(first, 8)) << "there is no newest";
    ring.push(first, 8);
    EXPECT_FALSE(ring.join(second, 3)) << "too many together";
    EXPECT_EQ(length_of(second.head), 2u);
    ASSERT_TRUE(ring.join(second, 4));
    EXPECT_EQ(ring.size(), 1u);
    const Batch both = ring.pop_newest();
    EXPECT_EQ(both.head, second.head);
    EXPECT_EQ(both.count, 4u);
    EXPECT_EQ(length_of(both.head), 4u);
    EXPECT_EQ(object[3].object.next, first.head);
    EXPECT_TRUE(ring.empty());
}

// What is in the ring is a list of so many objects at any time, and no object is lost.
TEST(Ring, ManyThreadsJoin) {
    constexpr unsigned threads = 4, objects = 256, most = 16;
    Ring ring;
    std::vector<Aligned> object(objects);
    std::atomic<unsigned> held{0};
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<Object*> own;
            for (unsigned i = t; i < objects; i += threads) own.push_back(&object[i].object);
            const auto take = [&](Batch list) {
                ASSERT_EQ(length_of(list.head), list.count);
                for (Object* o = list.head; o != nullptr; o = o->next) own.push_back(o);
            };
            for (int i = 0; i < 200'000; ++i) {
                if (own.size() < 3 || random() % 8 == 0) {
                    take(ring.pop_newest());
                    continue;
                }
                Batch list{nullptr, static_cast<std::uint32_t>(1 + random() % 3)};
                for (unsigned k = 0; k < list.count; ++k) {
                    own.back()->next = list.head;
                    list.head = own.back();
                    own.pop_back();
                }
                if (!ring.join(list, most)) take(ring.push(list, 8));
            }
            held += unsigned(own.size());
        });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(held + ring.objects(), objects);
}

}  // namespace
}  // namespace numalloc
