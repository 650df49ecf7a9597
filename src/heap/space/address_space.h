// The layout of the address space: a region for each node and, on machines with several, one interleaved over all
// (NUMAlloc, 3.1). Where the kernel balances memory, a balanced region for each node follows
// (heap/node/process_heap.h).
//
//   base                base + stride          base + 2 * stride              base + total
//   | region of node 0  | region of node 1     | ...            | interleaved |
//
// The place is chosen where nothing is mapped, and mapped step by step as it is needed. So the kernel's accounts of the
// process (RLIMIT_AS, RLIMIT_MEMLOCK, a core dump, an emulator's page tables) count only memory in use. The other
// addresses are not reserved: if another mapping comes to lie there, the heap steps over it.
//
// A region, from its start R:
//   | class map |     | thread heaps | bag marks | Bag table | NodeHeap | bags .... |           nothing          |
//   R             R + reach - T      R + reach                          R + data_offset  R + end_offset    R + stride
//     1 B/bag             T bytes      4 bits/bag  32 B/bag
//
// Everything before the bags is metadata: on the region's own node, never on huge pages.
//
//   stride = 2^stride_shift,  node of p = (p - base) >> stride_shift,  total = (regions - 1) * stride + end_offset
//   end_offset <= stride / 2,  T <= (stride - end_offset) / 32 KiB
//   bag of p = (p - R) / 32 KiB,  class of p = byte R + bag
//
// free() finds that byte by one addition, from the address H of the thread's heap alone: with
//   before = reach - (H - R),  bias = before * 32 KiB - R,  bound = before + end_bag
//   j = (p + bias) / 32 KiB = before + bag
//   R + bag = H + j - reach
//   j < bound  <=>  -before <= bag < end_bag
// The thread heaps end at R + reach, hence 0 < before <= T: an address that passes the comparison is in a bag of this
// region, or less than T * 32 KiB below the region. No bags lie there: it is the part of the region before that is
// never mapped, or `below` the first region:
//   below = T * 32 KiB <= stride - end_offset
// free() faults on a pointer in [base - below, base + total) that is in no bag. So the place is chosen far from where
// the kernel puts libraries and stacks, and the side heap and guarded objects with them. Only a program that passes a
// pointer that malloc did not return, into a mapping which it has itself put there, meets the fault.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"
#include "os/memory.h"

namespace numalloc {

constexpr unsigned largest_stride_shift = 45;
constexpr Bytes largest_stride = Bytes{1} << largest_stride_shift;
constexpr Bytes smallest_stride = 4 * GiB;

// The longest possible region, and its number of bags. glibc grants 12 TiB and more that a program never touches.
constexpr Bytes longest_region = 13 * TiB;
static_assert(longest_region <= largest_stride / 2);
constexpr std::uint64_t most_bags = longest_region >> bag_shift;

// The largest T: some 23,000 threads a node, in the hardened library 17,000.
constexpr Bytes most_thread_heaps = 128 * MiB;
// A constant in the code of free(): see above. Room for the largest class map and, behind it, the largest T.
constexpr Bytes class_reach = most_bags + most_thread_heaps;

struct SpaceOptions {
    Bytes stride = largest_stride;  // at most; a power of two
    Bytes bags = longest_region;    // bytes of bags a region, at most
    Bytes reserve = 0;              // of these, bytes held from the start: no other mapping can come to lie there
    bool held = false;              // hold all address space, wherever the kernel has room for it
};

class AddressSpace {
public:
    // Chooses a place for `regions` regions. Call it once. false if there is no place.
    bool choose(unsigned regions, Bytes node_heap_bytes, const SpaceOptions& options = {});

    bool contains(const void* p) const { return address_of(p) - base_ < total_; }
    unsigned region_of(const void* p) const { return static_cast<unsigned>((address_of(p) - base_) >> stride_shift_); }
    Address region(unsigned r) const { return base_ + (Address{r} << stride_shift_); }
    unsigned regions() const { return regions_; }
    Bytes stride() const { return Bytes{1} << stride_shift_; }

    Bytes bag_marks_offset() const { return class_reach; }
    Bytes bag_table_offset() const { return bag_table_offset_; }
    Bytes node_heap_offset() const { return node_heap_offset_; }
    Bytes thread_heaps_offset() const { return class_reach - thread_heaps_bytes(); }
    Bytes thread_heaps_bytes() const { return thread_heaps_bytes_; }
    Bytes data_offset() const { return data_offset_; }
    // The end of the last bag.
    Bytes end_offset() const { return end_offset_; }
    Bytes reserve() const { return reserve_; }

    // Makes the pages usable; they read as zero.
    os::Mapped map(Address from, Bytes bytes) const;
    // Undoes map(). false, with nothing changed, if the kernel refuses.
    bool unmap(Address from, Bytes bytes) const;

private:
    bool lay_out(unsigned stride_shift, const SpaceOptions& options);
    bool parts_are_free(unsigned r) const;
    bool find_place();
    Bytes below() const { return thread_heaps_bytes_ << bag_shift; }

    Address base_ = 0;
    Bytes total_ = 0;
    unsigned stride_shift_ = 0;
    unsigned regions_ = 0;
    bool held_ = false;
    Bytes reserve_ = 0;
    Bytes thread_heaps_bytes_ = 0;
    Bytes bag_table_offset_ = 0;
    Bytes node_heap_offset_ = 0;
    Bytes node_heap_bytes_ = 0;
    Bytes data_offset_ = 0;
    Bytes end_offset_ = 0;
};

}  // namespace numalloc
