// One node's bags by themselves, without the process's heap: for tests of the floors below it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "heap/pages/page_heap.h"

namespace numalloc::testing {

class Node {
public:
    explicit Node(std::int32_t purge_delay, Bytes limit = 512 * MiB, std::uint32_t most_moved = 8192,
                  bool huge_pages = false, bool populate = false, bool (*touch_is_dear)(void*, Bytes) = nullptr,
                  std::uint32_t most_advice_changes = 0)
        : Node(purge_delay, SpaceOptions{.stride = smallest_stride, .bags = limit, .held = true}, most_moved,
               huge_pages, populate, touch_is_dear, most_advice_changes) {}
    Node(std::int32_t purge_delay, const SpaceOptions& options_of_space, std::uint32_t most_moved = 8192,
         bool huge_pages = false, bool populate = false, bool (*touch_is_dear)(void*, Bytes) = nullptr,
         std::uint32_t most_advice_changes = 0) {
        EXPECT_TRUE(space_.choose(1, 64 * KiB, options_of_space));
        const os::HugePages advice = huge_pages ? os::HugePages::on : os::HugePages::off;
        EXPECT_TRUE(pages.region().open(space_, 0, {.huge_pages = advice, .huge = huge_pages}));
        PageHeapOptions options;
        options.purge_delay = purge_delay;
        options.most_moved = most_moved;
        options.huge_pages = huge_pages;
        options.touch_is_dear = touch_is_dear;
        options.huge_on_evidence = most_advice_changes != 0;
        options.most_advice_changes = most_advice_changes;
        options.populate = populate;
        pages.start(options);
    }
    ~Node() { os::unmap(reinterpret_cast<void*>(space_.region(0)), space_.end_offset()); }

    char* at(BagIndex run) { return static_cast<char*>(pages.region().address(run)); }
    void fill(BagIndex run, std::uint32_t bags) { std::memset(at(run), 0xEE, bags * bag_bytes); }
    BagIndex take(std::uint32_t bags) { return pages.take(bags, 1, BagState::big); }
    std::uint32_t dirty(BagIndex run, std::uint32_t bags) { return pages.region().count_dirty(run, bags); }
    BagIndex take_filled(std::uint32_t bags) {
        const BagIndex run = take(bags);
        fill(run, bags);
        return run;
    }
    std::uint64_t room() const { return pages.region().end_bag().value - pages.region().first_bag().value; }

    PageHeap pages;

private:
    AddressSpace space_;
};

}  // namespace numalloc::testing
