// Where everything lies: one contiguous reserve, a region of equal length for each node and,
// on machines with several, one more that is interleaved over all (paper 3.1).
//
//   base                base + stride          base + 2 * stride
//   | region of node 0  | region of node 1     | ...            | interleaved |
//
// A region, from its start R:
//   | guard | class map | guard | thread heaps | bag marks | Bag table | NodeHeap | bags .... |
//   R       M                     M + reach - T  4 bits/bag  32 B/bag             R + data_offset
//   T zeros   1 B/bag     T zeros   T bytes
//
// All before the bags is metadata: on the region's own node, never on huge pages.
//
//   stride = 2^stride_shift,  node of p = (p - base) >> stride_shift
//   bag of p = (p - R) / 32 KiB,  class of p = byte M + bag
//
// free() finds that byte from the address H of the thread's heap alone, by one addition: with
//   T = thread_heaps_span,  reach = fast_bags + 2 T,  bias = ((reach - (H - M)) * 32 KiB) - R
//   j = (p + bias) / 32 KiB = bag + reach - (H - M)
//   M + bag = H + j - reach
// H - M lies in [reach - T, reach), so 0 < reach - (H - M) <= T: all bags of the region have
// j < fast_bags + T, and every p with such a j has its byte in the map or in a guard, which is
// why there are two. The byte is 0 unless p lies in a small bag of this region.
//
// Everything is reserved without access and committed bit by bit.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"
#include "os/memory.h"

namespace numalloc {

// What free() compares an offset with, a constant in its code: the longest region there is.
constexpr unsigned fast_span_shift = 42;
constexpr Bytes fast_span = Bytes{1} << fast_span_shift;
constexpr std::uint64_t fast_bags = fast_span >> bag_shift;

// Address space for a node's thread heaps: some 40,000 threads.
constexpr Bytes thread_heaps_span = 256 * MiB;
constexpr Bytes class_reach = fast_bags + 2 * thread_heaps_span;
constexpr std::uint64_t fast_bound = fast_bags + thread_heaps_span;

// The first part of a node's bags stays on normal pages even where the system says `always`:
// a small program is not charged 2 MiB for each page it touches.
constexpr Bytes normal_pages_first = 8 * MiB;
// And so much where it leaves huge pages to programs and, with thp=auto, the rest is asked for: a huge
// page in part used is at most 1/64 of what is there.
constexpr Bytes normal_pages_unless_asked = 128 * MiB;

class AddressSpace {
public:
    // Reserves `regions` regions, of at most `limit` bytes each unless limit is 0. Called once.
    // false when not even the smallest reserve is granted.
    bool reserve(unsigned regions, Bytes limit, Bytes node_heap_bytes);

    bool contains(const void* p) const { return address_of(p) - base_ < total_; }
    unsigned region_of(const void* p) const { return static_cast<unsigned>((address_of(p) - base_) >> stride_shift_); }
    Address region(unsigned r) const { return base_ + (Address{r} << stride_shift_); }
    unsigned regions() const { return regions_; }

    Bytes region_bytes() const { return length_; }
    Bytes class_map_offset() const { return class_map_offset_; }
    Bytes bag_marks_offset() const { return bag_marks_offset_; }
    Bytes bag_table_offset() const { return bag_table_offset_; }
    Bytes node_heap_offset() const { return node_heap_offset_; }
    Bytes thread_heaps_offset() const { return thread_heaps_offset_; }
    Bytes data_offset() const { return data_offset_; }

    // There are guards and whole class maps, as above. Not so where address space is limited:
    // then free() takes the exact path.
    bool fast_frees() const { return fast_frees_; }

private:
    bool lay_out(Bytes length, Bytes node_heap_bytes, bool whole_map);

    Address base_ = 0;
    Bytes total_ = 0;
    Bytes length_ = 0;
    unsigned stride_shift_ = 0;
    unsigned regions_ = 0;
    bool fast_frees_ = false;
    Bytes class_map_offset_ = 0;
    Bytes bag_marks_offset_ = 0;
    Bytes bag_table_offset_ = 0;
    Bytes node_heap_offset_ = 0;
    Bytes thread_heaps_offset_ = 0;
    Bytes data_offset_ = 0;
};

}  // namespace numalloc
