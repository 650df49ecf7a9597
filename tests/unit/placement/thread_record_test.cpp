// Records of threads: found by what names them, however many there are.
#include "placement/thread_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace numalloc::placement {
namespace {

constexpr int many = 10000;

pthread_t handle_of(int i) {
    return 0x7F0000000000 + pthread_t{0x801000} * static_cast<unsigned>(i);
}  // stacks of 8 MiB

struct TenThousand {
    Records records;
    std::vector<ThreadRecord*> all;
    TenThousand() {
        EXPECT_TRUE(records.start(1));
        for (int i = 0; i < many; ++i) {
            ThreadRecord* const r = all.emplace_back(records.take());
            records.set_tid(r, 1000 + i);
            records.set_handle(r, handle_of(i));
            records.set_owner(r, i);
        }
    }
};

TEST(ThreadRecords, AreFoundByEachOfTheirNames) {
    static TenThousand t;
    for (int i = 0; i < many; ++i) {
        ThreadRecord* const r = t.all[static_cast<unsigned>(i)];
        ASSERT_EQ(t.records.find(1000 + i), r);
        ASSERT_EQ(t.records.find(handle_of(i)), r);
        ASSERT_EQ(t.records.find_owner(i), r);
    }
    EXPECT_EQ(t.records.find(999), nullptr);
    EXPECT_EQ(t.records.find(handle_of(many)), nullptr);
    EXPECT_EQ(t.records.find_owner(many), nullptr);
    EXPECT_EQ(t.records.find(0), nullptr) << "a thread without an ID yet";
    EXPECT_EQ(t.records.find(pthread_t{}), nullptr);
}

TEST(ThreadRecords, AnEndedOneIsNotFoundAndItsRecordServesAgain) {
    static TenThousand t;
    for (int i = 0; i < many; i += 2) t.records.give(t.all[static_cast<unsigned>(i)]);
    for (int i = 0; i < many; ++i) {
        ThreadRecord* const expected = i % 2 == 0 ? nullptr : t.all[static_cast<unsigned>(i)];
        ASSERT_EQ(t.records.find(1000 + i), expected);
        ASSERT_EQ(t.records.find(handle_of(i)), expected);
        ASSERT_EQ(t.records.find_owner(i), expected);
    }
    ThreadRecord* const again = t.records.take();
    t.records.set_tid(again, 1000);
    EXPECT_EQ(t.records.find(1000), again);
    EXPECT_EQ(t.records.find(handle_of(0)), nullptr);
}

TEST(ThreadRecords, OneIsKeptAndTheMemoryOfAllOthersServesAgain) {
    static TenThousand t;
    ThreadRecord* const kept = t.all[4321];
    const std::uint64_t generation = kept->generation;
    t.all[0]->next = t.all[0];  // lists that another thread was changing are not read
    t.records.keep_only(kept);
    EXPECT_EQ(t.records.first(), kept);
    EXPECT_EQ(kept->next, nullptr);
    EXPECT_EQ(kept->generation, generation);
    for (int i = 0; i < many; ++i) ASSERT_EQ(t.records.find(1000 + i), nullptr);
    std::set<ThreadRecord*> again{t.all.begin(), t.all.end()};
    const std::size_t before = again.size();
    std::set<ThreadRecord*> taken{kept};
    for (int i = 1; i < many; ++i) EXPECT_TRUE(taken.insert(t.records.take()).second);
    again.insert(taken.begin(), taken.end());
    // The newest slab was not full.
    EXPECT_LT(again.size(), before + 400);
    t.records.set_tid(kept, 7);
    EXPECT_EQ(t.records.find(7), kept);
}

TEST(ThreadRecords, ANewNameReplacesTheOldOneAndTheNewestHasIt) {
    static Records records;
    ASSERT_TRUE(records.start(1));
    ThreadRecord* const one = records.take();
    ThreadRecord* const two = records.take();
    records.set_owner(one, 7);
    records.set_owner(one, 7);
    records.set_owner(two, 7);
    EXPECT_EQ(records.find_owner(7), two);
    records.set_owner(two, 8);
    EXPECT_EQ(records.find_owner(7), one);
    EXPECT_EQ(records.find_owner(8), two);
}

// The steps of a search are those of its bucket.
TEST(ThreadRecords, NoBucketIsLong) {
    using OfTid = RecordIndex<int, 0, &ThreadRecord::tid, &ThreadRecord::next_of_tid>;
    using OfHandle = RecordIndex<pthread_t, 0, &ThreadRecord::handle, &ThreadRecord::next_of_handle>;
    std::vector<int> tids(1U << OfTid::bits), handles(1U << OfHandle::bits);
    for (int i = 0; i < many; ++i) {
        ++tids[OfTid::bucket_of(1000 + i)];
        ++handles[OfHandle::bucket_of(handle_of(i))];
    }
    EXPECT_LE(*std::max_element(tids.begin(), tids.end()), 8);
    EXPECT_LE(*std::max_element(handles.begin(), handles.end()), 8);
}

}  // namespace
}  // namespace numalloc::placement
