#include "os/page_histogram.h"

#include "os/memory.h"
#include "os/numa_policy.h"
#include "os/optional_call.h"

namespace numalloc::os {

namespace {

constexpr unsigned at_once = 512;

struct Pages {
    Address at;
    std::uint64_t left;
};
Pages pages_of(const void* p, Bytes bytes) {
    if (bytes == 0) return {0, 0};
    const Address first = align_down(address_of(p), page_size());
    const Address last = align_down(address_of(p) + (bytes - 1), page_size());
    return {first, (last - first) / page_size() + 1};
}

}  // namespace

int count_pages(const void* p, Bytes bytes, PageHistogram& into) {
    const void* page[at_once];
    int node[at_once];
    for (Pages pages = pages_of(p, bytes); pages.left > 0;) {
        unsigned count = 0;
        for (; count < at_once && pages.left > 0; --pages.left, pages.at += page_size())
            page[count++] = reinterpret_cast<const void*>(pages.at);
        const long result = optional_call(SYS_move_pages, 0, count, page, 0, node, 0);
        if (failed(result)) return static_cast<int>(-result);
        for (unsigned i = 0; i < count; ++i)
            if (node[i] >= 0) into.add(static_cast<unsigned>(node[i]), 1);
    }
    return 0;
}

void count_resident(const void* p, Bytes bytes, unsigned os_node, PageHistogram& into) {
    unsigned char present[at_once];
    for (Pages pages = pages_of(p, bytes); pages.left > 0;) {
        const std::uint64_t count = min_of<std::uint64_t>(pages.left, at_once);
        if (!failed(optional_call(SYS_mincore, pages.at, count * page_size(), present))) {
            for (std::uint64_t i = 0; i < count; ++i) into.add(os_node, present[i] & 1);
        } else {
            // Part of the range is not mapped.
            for (std::uint64_t i = 0; i < count; ++i)
                into.add(os_node, ask_for_page(reinterpret_cast<const void*>(pages.at + i * page_size())) == 0 ? 1 : 0);
        }
        pages.left -= count;
        pages.at += count * page_size();
    }
}

}  // namespace numalloc::os
