// Where everything lies: a stretch of addresses for each node and, on machines with several, one more
// that is interleaved over all (paper 3.1).
//
//   base                base + stride          base + 2 * stride
//   | region of node 0  | region of node 1     | ...            | interleaved |
//
// A place is chosen where nothing is mapped, and then mapped bit by bit as it is needed. So what the
// kernel counts for the process (RLIMIT_AS, RLIMIT_MEMLOCK, a core dump, an emulator's page tables) is what is in use.
// The rest of the stretch belongs to nobody: where another mapping came to lie in it, the heap steps over that.
//
// A region, from its start R:
//   | class map |     | thread heaps | bag marks | Bag table | NodeHeap | bags .... |           nothing          |
//   R             R + reach - T      R + reach                          R + data_offset  R + end_offset    R + stride
//     1 B/bag             T bytes      4 bits/bag  32 B/bag
//
// All before the bags is metadata: on the region's own node, never on huge pages.
//
//   stride = 2^stride_shift,  node of p = (p - base) >> stride_shift
//   end_offset <= stride / 2,  T <= (stride - end_offset) / 32 KiB
//   bag of p = (p - R) / 32 KiB,  class of p = byte R + bag
//
// free() finds that byte from the address H of the thread's heap alone, by one addition: with
//   before = reach - (H - R),  bias = before * 32 KiB - R,  bound = before + end_bag
//   j = (p + bias) / 32 KiB = before + bag
//   R + bag = H + j - reach
//   j < bound  <=>  -before <= bag < end_bag
// The thread heaps end at R + reach, hence 0 < before <= T: what passes the comparison is a bag of this
// region, or lies less than stride - end_offset below it. There are no bags there: it is the part of the
// region before that we never map, or no address of ours. Only a pointer that is not malloc's can point there; its
// free() may end in a fault instead of a message.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/bag.h"
#include "heap/space/size_class.h"
#include "os/memory.h"

namespace numalloc {

constexpr unsigned largest_stride_shift = 43;
constexpr Bytes largest_stride = Bytes{1} << largest_stride_shift;
constexpr Bytes smallest_stride = 4 * GiB;

// The longest region there is, and its bags.
constexpr Bytes longest_region = largest_stride / 2;
constexpr std::uint64_t most_bags = longest_region >> bag_shift;

// A constant in the code of free(): see above. Room for the largest class map, and behind it the
// largest T: some 23,000 threads a node.
constexpr Bytes class_reach = 2 * most_bags;

struct SpaceOptions {
    Bytes stride = largest_stride;  // at most, a power of two
    Bytes bags = longest_region;    // bytes of bags a region, at most
    Bytes reserve = 0;              // of these, held from the start: nobody else's mapping comes to lie there
    bool held = false;              // all of it is held, wherever the kernel has room
};

class AddressSpace {
public:
    // Chooses a place for `regions` regions. Called once. false where there is none.
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
    // Behind the last bag.
    Bytes end_offset() const { return end_offset_; }
    Bytes reserve() const { return reserve_; }

    // Makes pages of it usable; they are zero.
    os::Mapped map(Address from, Bytes bytes) const;
    // They are as before map(). false, and nothing has changed, where the kernel refuses.
    bool unmap(Address from, Bytes bytes) const;

private:
    bool lay_out(unsigned stride_shift, const SpaceOptions& options);
    bool parts_are_free(unsigned r) const;
    bool find_place();

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
