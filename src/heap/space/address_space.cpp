#include "heap/space/address_space.h"

#include <initializer_list>

#include "os/seeds.h"

namespace numalloc {

namespace {

// Candidates for the place, the best first. The place is one of `room` bytes from `lowest` on.
struct Candidate {
    Address lowest;
    Bytes room;
};

// Below the program itself (85 TiB), and so high that a program can reserve 60 TiB in one piece.
constexpr Candidate high{65 * TiB, 6 * TiB};
// Above the addresses that run-time systems request (Go's heap at 0.75 TiB, Java's ZGC at 4 to 20 TiB), and, by
// `below`, above libraries and stacks where the stack is unlimited (20 to 21.4 TiB on x86-64, from there downwards).
constexpr Address middle = 26 * TiB;
// Used instead if the heaps of all nodes would reach the program itself.
constexpr Address low = 9 * TiB;
constexpr Address programs = 84 * TiB;
// Left to new mappings that the kernel puts below the libraries, at most.
constexpr Bytes left_to_mappings = 4 * TiB;
// Longer regions of several nodes would leave no long stretch of addresses to the program.
constexpr unsigned largest_shift_of_several = 43;

bool is_free(Address page) { return os::is_free(reinterpret_cast<void*>(page), os::page_size()); }

}  // namespace

bool AddressSpace::lay_out(unsigned stride_shift, const SpaceOptions& options) {
    const Bytes page = os::page_size();
    stride_shift_ = stride_shift;
    const Bytes length = min_of(stride() / 2, longest_region);
    const Bytes bags = length >> bag_shift;
    bag_table_offset_ = bag_marks_offset() + align_up(bag_marks_bytes(bags), page);
    node_heap_offset_ = bag_table_offset_ + align_up(bags * sizeof(Bag), page);
    data_offset_ = align_up(node_heap_offset_ + align_up(node_heap_bytes_, page), os::huge_page);
    end_offset_ = min_of(length, data_offset_ + align_up(min_of(options.bags, length), os::huge_page));
    thread_heaps_bytes_ = min_of(most_thread_heaps, align_down((stride() - end_offset_) >> bag_shift, page));
    total_ = stride() * (regions_ - 1) + end_offset_;
    return data_offset_ + os::huge_page <= length;
}

// Whether the first page of each part of region r is free.
bool AddressSpace::parts_are_free(unsigned r) const {
    for (const Bytes offset :
         {Bytes{0}, thread_heaps_offset(), bag_marks_offset(), bag_table_offset_, node_heap_offset_, data_offset_})
        if (!is_free(region(r) + offset)) return false;
    return true;
}

// A free end shows that the machine has such addresses. The space between the parts is not tested: mapping it, if only
// for a moment, would cost an emulator gigabytes of page tables. A heap that meets another mapping there steps over it.
bool AddressSpace::find_place() {
    const Bytes room = stride() / 4;
    const Address libraries = os::where_the_kernel_maps();
    for (const Candidate& c : {high, Candidate{middle, room}, Candidate{low, room}, Candidate{total_, room}}) {
        if (c.lowest + c.room + total_ > programs) continue;
        // The more room, the harder it is to guess the place from outside.
        base_ = c.lowest + align_down(os::layout_seed(os::SeedFor::layout) % c.room, os::huge_page);
        const Bytes in_the_way = below() + total_ + min_of(left_to_mappings, total_);
        if (libraries - (base_ - below()) < in_the_way) continue;
        bool all = is_free(base_ + total_ - os::page_size());
        for (unsigned r = 0; all && r < regions_; ++r) all = parts_are_free(r);
        if (all) return true;
    }
    return false;
}

bool AddressSpace::choose(unsigned regions, Bytes node_heap_bytes, const SpaceOptions& options) {
    regions_ = regions;
    node_heap_bytes_ = node_heap_bytes;
    const unsigned asked = log2_floor(min_of(options.stride, largest_stride));
    const unsigned largest = regions == 1 ? asked : min_of(asked, largest_shift_of_several);
    for (const bool hold : {options.held, true}) {
        // Retry with shorter regions, for processors with fewer address bits and for emulators.
        for (unsigned shift = largest; (Bytes{1} << shift) >= smallest_stride; --shift) {
            if (!lay_out(shift, options)) break;
            held_ = hold;
            if (hold) {
                const Bytes in_front = align_up(below(), os::huge_page);
                base_ = address_of(os::hold(in_front + total_, os::huge_page));
                if (base_ == 0) continue;
                base_ += in_front;
            } else {
                reserve_ = min_of(align_up(min_of(options.reserve, longest_region), os::huge_page),
                                  end_offset_ - data_offset_);
                if (!find_place()) continue;
            }
            return true;
        }
    }
    base_ = total_ = 0;
    regions_ = 0;
    return false;
}

os::Mapped AddressSpace::map(Address from, Bytes bytes) const {
    void* const p = reinterpret_cast<void*>(from);
    if (held_) return os::commit(p, bytes) ? os::Mapped::done : os::Mapped::refused;
    return os::map_at(p, bytes);
}

bool AddressSpace::unmap(Address from, Bytes bytes) const {
    void* const p = reinterpret_cast<void*>(from);
    return held_ ? os::hold_again(p, bytes) : os::unmap(p, bytes);
}

}  // namespace numalloc
