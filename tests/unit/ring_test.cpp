// The circular array of batches, against a deque.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "heap/central/ring.h"

namespace numalloc {
namespace {

TEST(Ring, AgreesWithADeque) {
    std::mt19937 random(1);
    Ring ring;
    std::deque<Batch> model;
    Object object[64];
    for (int i = 0; i < 100'000; ++i) {
        const unsigned what = random() % 4;
        if (what <= 1 && model.size() < ring_slots) {
            const Batch list{&object[random() % 64], static_cast<std::uint32_t>(1 + random() % 256)};
            ring.push(list);
            model.push_back(list);
        } else if (what == 2) {
            const Batch newest = ring.pop_newest();
            ASSERT_EQ(newest.head == nullptr, model.empty());
            if (model.empty()) continue;
            ASSERT_EQ(newest.head, model.back().head);
            ASSERT_EQ(newest.count, model.back().count);
            model.pop_back();
        } else if (what == 3 && !model.empty()) {
            const Batch oldest = ring.pop_oldest();
            ASSERT_EQ(oldest.head, model.front().head);
            ASSERT_EQ(oldest.count, model.front().count);
            model.pop_front();
        }
        std::uint32_t objects = 0;
        for (const Batch& list : model) objects += list.count;
        ASSERT_EQ(ring.size(), model.size());
        ASSERT_EQ(ring.empty(), model.empty());
        ASSERT_EQ(ring.objects(), objects);
    }
}

#if defined(NUMALLOC_CHECKS)
TEST(BatchRingDeathTest, OneTooManyIsSeen) {
    Ring ring;
    Object object;
    for (unsigned i = 0; i < ring_slots; ++i) ring.push({&object, 1});
    EXPECT_DEATH(ring.push({&object, 1}), "assertion failed");
}
#endif

}  // namespace
}  // namespace numalloc
