// Where everything lies: a stretch of addresses for each node and, on machines with several, one more
// that is interleaved over all (paper 3.1). Which stretch is whose is by chance.
//
//   base                base + stride          base + 2 * stride
//   | region of node 1  | interleaved          | region of node 0  |  ...
//
// A place is chosen where nothing is mapped, and then mapped bit by bit as it is needed. So what the
// kernel counts for the process (RLIMIT_AS, RLIMIT_MEMLOCK, a core dump, an emulator's page tables) is what is in use.
// The rest of the stretch belongs to nobody: where another mapping came to lie in it, the heap steps over that.
//
// A region, from its start R. All before the bags' end is theirs, all metadata lies behind it, from M on: on the region's own
// node, never on huge pages.
//   |      | bags ...      |  T  |      | class map |      | thread heaps | · | bag marks | · | Bag table | · | NodeHeap |      |
//   R      R + bags        R + end_offset M             M + reach - T      M + reach                                   R + stride
//                                         1 B/bag          T bytes            4 bits/bag      32 B/bag
//
// Where the bags and M begin, and how long the gaps (·) are, is drawn for each region of each process: the address of an object
// says nothing about where metadata is, nor one part of it about the others. `Places` has them.
//
// Invariant: what has no name here is never mapped by us. So before and behind each part of the metadata, and between it and any
// bag, there is a page at least that nobody can touch.
//
//   stride = 2^stride_shift,  slot of p = (p - base) >> stride_shift,  its region: region_in_[slot]
//   end_offset <= stride / 2,  T <= (stride - end_offset) / 32 KiB
//   bag of p = (p - R) / 32 KiB,  class of p = byte M + bag
//
// free() finds that byte from the address H of the thread's heap alone, by one addition: with
//   before = reach - (H - M),  bias = before * 32 KiB - R,  bound = before + end_bag
//   j = (p + bias) / 32 KiB = before + bag
//   M + bag = H + j - reach
//   j < bound  <=>  -before <= bag < end_bag
// The thread heaps end at M + reach, hence 0 < before <= T: what passes the comparison is a bag of this
// region, or lies less than stride - end_offset below it. There are no bags there: it is metadata of the region
// before, or no address of ours. Only a pointer that is not malloc's can point there, or below the first bag; its
// free() reads one of the T bytes before M, or the class map's begin, and may end in a fault instead of a message.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "base/random.h"
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
// largest T: some 20,000 threads a node.
constexpr Bytes class_reach = 2 * most_bags;

// One for each node that the kernel can have, and the interleaved one.
constexpr unsigned most_regions = 1025;

struct SpaceOptions {
    Bytes stride = largest_stride;  // at most, a power of two
    Bytes bags = longest_region;    // bytes of bags a region, at most
    Bytes reserve = 0;              // of these, held from the start: nobody else's mapping comes to lie there
    bool held = false;              // all of it is held, wherever the kernel has room
};

// Of a region's parts, from the region's start.
struct Places {
    Bytes bags, bags_end;
    Bytes class_map;
    Bytes thread_heaps, thread_heaps_end;
    Bytes bag_marks;
    Bytes bag_table;
    Bytes node_heap;
};

class AddressSpace {
public:
    // Chooses a place for `regions` regions. Called once. false where there is none.
    bool choose(unsigned regions, Bytes node_heap_bytes, const SpaceOptions& options = {});

    bool contains(const void* p) const { return address_of(p) - base_ < total_; }
    unsigned region_of(const void* p) const { return region_in_[(address_of(p) - base_) >> stride_shift_]; }
    Address region(unsigned r) const { return base_ + (Address{slot_of_[r]} << stride_shift_); }
    unsigned regions() const { return regions_; }
    Bytes stride() const { return Bytes{1} << stride_shift_; }
    Address start() const { return base_; }
    Bytes bytes() const { return total_; }

    Places places(unsigned r) const;
    // Behind the last bag of any region.
    Bytes end_offset() const { return end_offset_; }
    Bytes reserve() const { return reserve_; }

    // Makes pages of it usable; they are zero.
    os::Mapped map(Address from, Bytes bytes) const;
    // They are as before map(). false, and nothing has changed, where the kernel refuses.
    bool unmap(Address from, Bytes bytes) const;

private:
    void draw();
    bool lay_out(unsigned stride_shift, const SpaceOptions& options);
    bool parts_are_free(unsigned r) const;
    bool find_place();

    Address base_ = 0;
    Bytes total_ = 0;
    unsigned stride_shift_ = 0;
    unsigned regions_ = 0;
    bool held_ = false;
    Bytes reserve_ = 0;
    Bytes bags_bytes_ = 0;
    Bytes end_offset_ = 0;
    Bytes thread_heaps_bytes_ = 0;
    Bytes bag_marks_bytes_ = 0;
    Bytes bag_table_bytes_ = 0;
    Bytes node_heap_bytes_ = 0;
    // How much chance there is in each of the places.
    Bytes bags_room_ = 0;
    Bytes metadata_room_ = 0;
    Bytes thread_heaps_room_ = 0;
    Bytes gap_room_ = 0;
    // What was drawn.
    std::uint64_t place_ = 0;
    std::uint64_t seed_ = 0;
    // The regions' order, both ways. Behind all else, for it is long.
    std::uint16_t region_in_[most_regions] = {};
    std::uint16_t slot_of_[most_regions] = {};
};

}  // namespace numalloc
