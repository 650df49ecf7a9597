// On which nodes the pages of a range are, as the kernel says.
#pragma once

#include <cstddef>

#include "base/bits.h"

namespace numalloc::os {

// The caller's counts, one a node by the kernel's number; more are added with each range. Nodes beyond `capacity` count
// in `found` alone.
struct PageHistogram {
    std::size_t* on_node = nullptr;
    unsigned capacity = 0;
    std::uint64_t found = 0;  // pages that are in memory

    void add(unsigned os_node, std::uint64_t pages) {
        found += pages;
        if (os_node < capacity) on_node[os_node] += pages;
    }
};

// Adds the pages that the range touches: by move_pages with no nodes named, 512 pages a call, which moves nothing. 0,
// or the kernel's refusal; what was counted before it stays.
int count_pages(const void* p, Bytes bytes, PageHistogram& into);

// The same for a machine of one node, whose number is `os_node`: by mincore, which nobody refuses.
void count_resident(const void* p, Bytes bytes, unsigned os_node, PageHistogram& into);

}  // namespace numalloc::os
