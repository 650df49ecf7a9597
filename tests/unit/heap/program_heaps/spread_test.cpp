// Where a page is longer than a bag, a heap over several nodes must leave alone what lies beside its bags.
#include "heap/program_heaps/spread.h"

#include "heap/program_heaps/bound_heap.h"
#include "os/memory.h"
#include "support/made_up_heap.h"

namespace {
constexpr numalloc::Bytes long_page = 64 * numalloc::KiB;
int discards = 0, parts_of_pages = 0;
}  // namespace

// The linker's names for os::page_size() and os::discard().
extern "C" numalloc::Bytes __wrap__ZN8numalloc2os9page_sizeEv() { return long_page; }
extern "C" bool __real__ZN8numalloc2os7discardEPvm(void* p, numalloc::Bytes bytes);
extern "C" bool __wrap__ZN8numalloc2os7discardEPvm(void* p, numalloc::Bytes bytes) {
    ++discards;
    if (numalloc::address_of(p) % long_page != 0 || bytes % long_page != 0) ++parts_of_pages;
    return __real__ZN8numalloc2os7discardEPvm(p, bytes);
}

namespace numalloc {
namespace {

TEST(Spread, NoPartOfAPageIsDiscarded) {
    testing::start_heap(2);
    Spread how;
    how.how = Spread::How::interleaved;
    how.nodes.add(0);
    how.nodes.add(1);
    BoundHeap* const heap = BoundHeap::create(NodeId{0}, how, nullptr);
    ASSERT_NE(heap, nullptr);
    for (int i = 0; i < 5000; ++i) ASSERT_NE(heap->allocate(100, 1).p, nullptr);
    ASSERT_NE(heap->allocate(MiB, 1).p, nullptr);
    EXPECT_GT(discards, 0);
    heap->destroy();
    EXPECT_EQ(parts_of_pages, 0);
}

}  // namespace
}  // namespace numalloc
