// What a refill fetches beyond the object that was asked for.
#include "heap/thread/refill.h"

#include <sys/mman.h>

#include <vector>

#include "heap/thread/held.h"
#include "support/made_up_heap.h"
#include "support/thread_lists.h"

namespace numalloc {
namespace {

using testing::allocate;
using testing::check_lists;
using testing::release;
using testing::run_on;

class Refill : public ::testing::Test {
protected:
    static void SetUpTestSuite() { testing::start_heap(2); }
    void TearDown() override { testing::validate_heap(); }
};

// Objects fetched ahead would push out the lists that the thread has.
TEST_F(Refill, AThreadNearItsLimitFetchesLargeObjectsOneByOne) {
    run_on(1, [] {
        ThreadHeap* const h = this_thread_heap;
        const ClassId kept = class_of(1000);
        const ClassId small = class_of(600);
        const ClassId large = class_of(3000);
        ASSERT_GT(process_heap.batch(large), 1u);
        std::vector<void*> all;
        for (int i = 0; i < 24; ++i) all.push_back(allocate(kept));
        for (void* p : all) release(p);
        const auto allocate_near_limit = [h](ClassId c) {
            h->slow_paths = 0;  // so that nothing is granted
            h->may_hold = h->held + 4 * KiB;
            void* const p = allocate(c);
            h->may_hold = policy::lists::any_may_hold;
            return p;
        };
        void* const first = allocate_near_limit(large);
        EXPECT_EQ(h->head[large.value], &end_of_list);
        release(first);
        void* const last = allocate_near_limit(large);  // of its list
        EXPECT_EQ(last, first);
        EXPECT_EQ(h->head[large.value], &end_of_list);
        EXPECT_NE(h->head[kept.value], &end_of_list);
        void* const other = allocate_near_limit(small);
        EXPECT_NE(h->head[small.value], &end_of_list);
        for (void* p : {last, other}) release(p);
        check_lists(h);
        void* const ahead = allocate(class_of(3500));
        EXPECT_NE(h->head[class_of(3500).value], &end_of_list);
        release(ahead);
    });
}

// A program may use only the end of a large object, as a stack.
TEST_F(Refill, ASingleObjectThatWasNeverUsedIsNotTouched) {
    run_on(0, [] {  // whose memory no other test uses
        for (const Bytes size : {Bytes{40} * KiB, Bytes{64} * KiB, Bytes{400} * KiB}) {
            void* const p = allocate(class_of(size));
            unsigned char resident = 1;
            auto* const page = reinterpret_cast<void*>(align_up(address_of(p), os::page_size()));
            ASSERT_EQ(mincore(page, 1, &resident), 0);
            EXPECT_EQ(resident & 1, 0) << size;
            release(p);
        }
    });
}

// calloc looks for pages that nobody has touched, but not in the object that the thread has just freed.
TEST_F(Refill, OnlyTheThreadsLastObjectIsReused) {
    run_on(1, [] {
        ThreadHeap* const h = this_thread_heap;
        const ClassId c = class_of(200 * KiB);
        const Allocation one = refill(h, c, 0), two = refill(h, c, 0);
        EXPECT_FALSE(one.reused || two.reused) << "never used before";
        for (void* p : {one.p, two.p}) release(p);
        const Allocation last = refill(h, c, 0), other = refill(h, c, 0);
        EXPECT_EQ(last.p, two.p);
        EXPECT_TRUE(last.reused);
        EXPECT_EQ(other.p, one.p);
        EXPECT_FALSE(other.reused) << "the node had it";
        for (void* p : {last.p, other.p}) release(p);
    });
}

// Each costs a page that a thread of many classes may never need.
TEST_F(Refill, ObjectsAbove4KiBAreFetchedAheadWhereAListRunsEmptyAgain) {
    run_on(1, [] {
        ThreadHeap* const h = this_thread_heap;
        const std::vector<ClassId> classes = {class_of(10000), class_of(6000), class_of(8000), class_of(12000),
                                              class_of(16000)};
        const auto ran_empty = [h](ClassId c) { return h->head[c.value] == &end_of_list; };
        const auto use = [&](ClassId c) {
            void* const p = allocate(c);
            const bool empty = ran_empty(c);
            release(p);
            return empty;
        };
        for (int round = 0; round < 3; ++round)
            for (const ClassId c : classes) {
                ASSERT_GT(process_heap.batch(c), 1u);
                EXPECT_TRUE(use(c)) << "one of five classes in turn";
            }
        EXPECT_FALSE(use(classes.back())) << "twice in a row";
        check_lists(h);
        const ClassId many = class_of(20000);
        void* const first = allocate(many);
        EXPECT_TRUE(ran_empty(many)) << "the first one";
        void* const second = allocate(many);
        EXPECT_FALSE(ran_empty(many)) << "a second one beside it";
        for (void* p : {first, second}) release(p);
        check_lists(h);
    });
}

}  // namespace
}  // namespace numalloc
