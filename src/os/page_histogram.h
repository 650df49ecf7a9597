// Counts the pages of a range by node, as the kernel reports them.
#pragma once

#include <cstddef>

#include "base/bits.h"

namespace numalloc::os {

// The caller's page counts, indexed by the kernel's node number; each range adds to them. Pages of nodes beyond
// `capacity` are counted in `found` only.
struct PageHistogram {
    std::size_t* on_node = nullptr;
    unsigned capacity = 0;
    std::uint64_t found = 0;  // pages that are in memory

    void add(unsigned os_node, std::uint64_t pages) {
        found += pages;
        if (os_node < capacity) on_node[os_node] += pages;
    }
};

// Adds the pages that the range touches, by move_pages without target nodes (which moves nothing), 512 pages a call.
// Returns 0 or the kernel's error; pages counted before an error stay counted.
int count_pages(const void* p, Bytes bytes, PageHistogram& into);

// The same for a machine of one node, whose number is `os_node`: by mincore, which needs no permission.
void count_resident(const void* p, Bytes bytes, unsigned os_node, PageHistogram& into);

}  // namespace numalloc::os
