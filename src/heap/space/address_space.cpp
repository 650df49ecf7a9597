#include "heap/space/address_space.h"

namespace numalloc {

namespace {

// User space has 2^47 bytes; three quarters of it are ours to ask for.
constexpr Bytes total_limit = 96 * TiB;
constexpr Bytes smallest_region = 4 * MiB;
constexpr Bytes page = 4 * KiB;

// Of a limited address space we take two thirds: the rest is for stacks, libraries and the
// program's own mappings.
constexpr Bytes share_of_limited(Bytes left) { return left / 3 * 2; }

}  // namespace

bool AddressSpace::lay_out(Bytes length, Bytes node_heap_bytes, bool whole_map) {
    const Bytes bags = length >> bag_shift;
    const Bytes thread_heaps = whole_map ? thread_heaps_span : align_up(length / 16, page);
    class_map_offset_ = whole_map ? thread_heaps_span : 0;
    thread_heaps_offset_ = class_map_offset_ + (whole_map ? fast_bags + thread_heaps_span : align_up(bags, page));
    bag_marks_offset_ = thread_heaps_offset_ + thread_heaps;
    bag_table_offset_ = bag_marks_offset_ + align_up(bag_marks_bytes(bags), page);
    node_heap_offset_ = bag_table_offset_ + align_up(bags * sizeof(Bag), page);
    data_offset_ = align_up(node_heap_offset_ + align_up(node_heap_bytes, page), os::huge_page);
    length_ = length;
    fast_frees_ = whole_map;
    return data_offset_ + os::huge_page <= length;
}

bool AddressSpace::reserve(unsigned regions, Bytes limit, Bytes node_heap_bytes) {
    const Bytes left = os::address_space_left();
    const bool limited = left != ~Bytes{0};
    Bytes length = min_of(fast_span, limit == 0 ? fast_span : align_up(limit, os::huge_page));
    if (limited) length = min_of(length, align_down(share_of_limited(left) / regions, os::huge_page));
    length = min_of(length, align_down(total_limit / regions, os::huge_page));

    // Halve what is refused (vm.overcommit_memory=2 refuses nothing here: no access, no charge;
    // a container's or the kernel's own limits may).
    for (; length >= smallest_region; length = align_down(length / 2, os::huge_page)) {
        // Between regions the stride must be a power of two; a single region may have any length.
        if (regions > 1) length = Bytes{1} << log2_floor(length);
        const bool whole_map = length / 8 >= 3 * thread_heaps_span + fast_bags;
        if (!lay_out(length, node_heap_bytes, whole_map)) return false;
        stride_shift_ = regions > 1 ? log2_floor(length) : fast_span_shift;
        void* p = os::reserve(length * regions, os::huge_page);
        if (p == nullptr) continue;
        base_ = address_of(p);
        total_ = length * regions;
        regions_ = regions;
        return true;
    }
    return false;
}

}  // namespace numalloc
