#include "heap/space/address_space.h"

#include <initializer_list>

namespace numalloc {

namespace {

// Above the places that run-time systems ask for by number (Go's heap at 0.75 TiB, Java's ZGC at 4 to 20 TiB),
// below libraries and stacks even where the kernel lays out upwards (42 TiB).
constexpr Address favourite = 20 * TiB;
// For so many nodes that this would reach the program itself (85 TiB).
constexpr Address low = 9 * TiB;
constexpr Address programs = 84 * TiB;

bool is_free(Address page) { return os::try_range(reinterpret_cast<void*>(page), os::page_size()) == os::Mapped::done; }

// A multiple of `unit`, as large as `room` at most.
Bytes drawn(Random& chance, Bytes room, Bytes unit) { return align_down(chance.next() % (room + unit), unit); }

}  // namespace

void AddressSpace::draw() {
    Random chance(os::layout_seed());
    place_ = chance.next();
    seed_ = chance.next();
    for (unsigned r = 0; r < regions_; ++r) {
        const unsigned slot = chance.below(r + 1);
        region_in_[r] = region_in_[slot];
        region_in_[slot] = static_cast<std::uint16_t>(r);
    }
    for (unsigned slot = 0; slot < regions_; ++slot) slot_of_[region_in_[slot]] = static_cast<std::uint16_t>(slot);
}

bool AddressSpace::lay_out(unsigned stride_shift, const SpaceOptions& options) {
    const Bytes page = os::page_size();
    stride_shift_ = stride_shift;
    total_ = stride() * regions_;
    const Bytes length = stride() / 2;
    bags_bytes_ = align_up(min_of(options.bags, length), os::huge_page);
    bags_room_ = align_down(length / policy::spared_part, os::huge_page);
    end_offset_ = min_of(length, os::huge_page + bags_room_ + bags_bytes_);
    thread_heaps_bytes_ = min_of(most_bags - page, align_down((stride() - end_offset_) >> bag_shift, page));
    thread_heaps_room_ = thread_heaps_bytes_ < policy::many_thread_heaps ? 0 : align_down(thread_heaps_bytes_ / policy::spared_part, page);
    const std::uint64_t bags = end_offset_ >> bag_shift;
    bag_marks_bytes_ = align_up(bag_marks_bytes(bags), page);
    bag_table_bytes_ = align_up(bags * sizeof(Bag), page);
    // With the bytes before the class map that free() may read, and a page behind each part.
    const Bytes metadata = thread_heaps_bytes_ + page + class_reach + page + bag_marks_bytes_ + page + bag_table_bytes_ + page +
                           align_up(node_heap_bytes_, page) + page;
    if (end_offset_ + metadata > stride()) return false;
    const Bytes rest = stride() - end_offset_ - metadata;
    gap_room_ = align_down(min_of(rest / policy::spared_part, policy::longest_gap), page);
    metadata_room_ = rest - 3 * gap_room_;
    return true;
}

Places AddressSpace::places(unsigned r) const {
    const Bytes page = os::page_size();
    Random chance(seed_ + r);
    Places at;
    at.bags = os::huge_page + drawn(chance, bags_room_, os::huge_page);
    at.bags_end = min_of(end_offset_, at.bags + bags_bytes_);
    at.class_map = end_offset_ + thread_heaps_bytes_ + page + drawn(chance, metadata_room_, page);
    at.thread_heaps_end = at.class_map + class_reach;
    at.thread_heaps = at.thread_heaps_end - thread_heaps_bytes_ + drawn(chance, thread_heaps_room_, page);
    at.bag_marks = at.thread_heaps_end + page + drawn(chance, gap_room_, page);
    at.bag_table = at.bag_marks + bag_marks_bytes_ + page + drawn(chance, gap_room_, page);
    at.node_heap = at.bag_table + bag_table_bytes_ + page + drawn(chance, gap_room_, page);
    return at;
}

// Whether the parts of region r can begin where they are to.
bool AddressSpace::parts_are_free(unsigned r) const {
    const Places at = places(r);
    for (const Bytes offset : {at.bags, at.class_map + (at.bags >> bag_shift), at.thread_heaps, at.bag_marks, at.bag_table, at.node_heap})
        if (!is_free(align_down(region(r) + offset, os::page_size()))) return false;
    return true;
}

// The end says whether the machine has such addresses. What lies between is not looked at: to map it, if only for a
// moment, would cost an emulator gigabytes of page tables. Who meets another mapping there steps over it.
bool AddressSpace::find_place() {
    const Bytes room = stride() / 4;
    // The more room, the less the place is known from outside.
    const Bytes shift = align_down(place_ % room, os::huge_page);
    for (const Address lowest : {favourite, low, total_}) {
        if (lowest + room + total_ > programs) continue;
        base_ = lowest + shift;
        bool all = is_free(base_ + total_ - os::page_size());
        for (unsigned r = 0; all && r < regions_; ++r) all = parts_are_free(r);
        if (all) return true;
    }
    return false;
}

bool AddressSpace::choose(unsigned regions, Bytes node_heap_bytes, const SpaceOptions& options) {
    if (regions > most_regions) return false;
    regions_ = regions;
    node_heap_bytes_ = node_heap_bytes;
    draw();
    const unsigned largest = log2_floor(min_of(options.stride, largest_stride));
    for (const bool hold : {options.held, true}) {
        // Processors with fewer address bits, emulators and the like: shorter regions.
        for (unsigned shift = largest; (Bytes{1} << shift) >= smallest_stride; --shift) {
            if (!lay_out(shift, options)) break;
            held_ = hold;
            if (hold) {
                base_ = address_of(os::hold(total_, os::huge_page));
                if (base_ == 0) continue;
            } else {
                reserve_ = align_up(options.reserve, os::huge_page);
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
