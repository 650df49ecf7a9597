// One node's part of the address space: its class map, its table of bags, and the bags
// themselves, mapped from the bottom as they are first needed. What others mapped in between is left out.
//
// The maps are written under the lock of whoever owns the bags; class_at() is read without a
// lock by free(): a program may only free what it owns, and while it owns it the byte stands.
#pragma once

#include <atomic>

#include "base/atomic.h"
#include "heap/space/address_space.h"
#include "os/mapping.h"
#include "os/numa_policy.h"

namespace numalloc {

// What the kernel is told of a region's pages.
struct RegionPages {
    os::HugePages huge_pages = os::HugePages::system;  // of all but the first bags
    Bytes normal_first = policy::normal_pages_first;   // the length of these
    bool huge_by_itself = false;                       // these too may become huge pages without being asked
    bool huge = false;                                 // the rest may be huge pages
    bool huge_if_cheap = false;                        // as long as they cost what clearing them costs
    enum class Place { first_touch, preferred, within, strict, interleaved };
    Place place = Place::first_touch;
    unsigned os_node = 0;
    const os::NodeMask* nodes = nullptr;  // within: a full node's pages come from others of these

    // Pages of the range come from there; where that is refused, by first touch.
    void bind(void* p, Bytes bytes) const;
    // The same for metadata, which is never spread: a thread heap comes by first touch of its own thread.
    void bind_metadata(void* p, Bytes bytes) const {
        if (place != Place::interleaved) bind(p, bytes);
    }
};

// Metadata pages of one kind: mapped from their start as far as they are needed.
class MetadataPages {
public:
    MetadataPages() = default;
    // `start` is a page's.
    explicit MetadataPages(Address start) : start_(start), end_(start) {}
    bool map_up_to(Address end, const AddressSpace& space, const RegionPages& pages);
    // As if none had been mapped.
    void give_back(const AddressSpace& space);

private:
    Address start_ = 0;
    Address end_ = 0;  // of what is usable
};

class Region {
public:
    // Maps the first metadata. `space` outlives the region. false, and nothing has changed, with no memory left.
    bool open(const AddressSpace& space, unsigned region, const RegionPages& pages);

    Address start() const { return start_; }
    std::uint8_t* class_map() const { return reinterpret_cast<std::uint8_t*>(start_); }
    BagIndex first_bag() const { return first_bag_; }
    BagIndex end_bag() const { return end_bag_; }

    BagIndex bag_of(const void* p) const { return BagIndex{(address_of(p) - start_) >> bag_shift}; }
    void* address(BagIndex b) const { return reinterpret_cast<void*>(start_ + (Address{b.value} << bag_shift)); }

    Bag& bag(BagIndex b) const { return bags_[b.value]; }
    // The first bag of the run that an allocated bag belongs to.
    BagIndex head_of(BagIndex b) const {
        const Bag& entry = bag(b);
        return entry.state == BagState::inside ? b - entry.run : b;
    }

    // Makes head_of() right for all bags of a run of objects. The last one's entry is written
    // already, under the lock under which neighbours read it. `from`: those before it are right.
    void mark_inside(BagIndex first, Bytes bags, std::uint32_t from = 1) {
        for (std::uint32_t i = from; i + 1 < bags; ++i) {
            Bag& inside = bag(first + i);
            inside.state = BagState::inside;
            inside.run = i;
        }
    }

    ClassId class_at(BagIndex b) const { return ClassId{load_relaxed(class_map()[b.value])}; }
    void set_class(BagIndex b, Bytes bags, ClassId c) {
        for (Bytes i = 0; i < bags; ++i) store_relaxed(class_map()[b.value + i], c.value);
    }

    // Marks are set under the page heap's lock; whoever owns a bag may ask without it, while the
    // neighbours' bits in the same word change.
    std::uint32_t count(BagMark mark, BagIndex b, Bytes bags) const;
    void set(BagMark mark, BagIndex b, Bytes bags, bool on);
    std::uint32_t count_dirty(BagIndex b, Bytes bags) const { return count(BagMark::dirty, b, bags); }
    // Of an object that was never handed out, in bags that are in use.
    bool is_zero(const void* p, Bytes bytes) const {
        const BagIndex first = bag_of(p);
        return count_dirty(first, bag_of(static_cast<const char*>(p) + bytes - 1) - first + 1) == 0;
    }
    void set_dirty(BagIndex b, Bytes bags, bool dirty) { set(BagMark::dirty, b, bags, dirty); }

    // Bags that are in use become what they were at first: zero pages in the region's own mapping, bound
    // and advised as it is.
    os::Replaced renew(BagIndex b, Bytes bags);
    // The binding and the advice alone.
    void settle(BagIndex b, Bytes bags);
    void advise(BagIndex b, Bytes bags, os::HugePages mode) { os::advise_huge(address(b), bags << bag_shift, mode); }

    // The end of the usable bags, in two steps, so that the kernel works without the lock that guards the bags. Of the
    // first steps one thread at a time is in one: Maps the bags from committed() up to `up_to`, and some more. Where it
    // is usable to; 0 when the OS refuses, or another mapping is in the way.
    std::uint64_t map_up_to(std::uint64_t up_to);
    // After that: maps `bags` bags in a row behind what is in the way; none where that cannot be. What lies between
    // committed() and the first of them is somebody else's.
    struct Stretch {
        std::uint64_t first = 0, end = 0;
    };
    Stretch map_beyond(std::uint64_t bags);
    // Where the bags from `from` on may be cut off, which are clean; and what becomes of those up to `to` that nobody
    // uses any more: they leave the address space, as far as the OS takes them back. Where it is usable to.
    std::uint64_t trimmed(std::uint64_t from) const { return align_up(from, unit_at(from)); }
    std::uint64_t unmap(std::uint64_t from, std::uint64_t to);
    // The second step.
    void set_committed(std::uint64_t end) { committed_.store(end, std::memory_order_relaxed); }
    // Also read without a lock: what a caller owns lies below.
    std::uint64_t committed() const { return committed_.load(std::memory_order_relaxed); }
    bool is_mapped(BagIndex b) const { return b.value < committed(); }

    // Bags from here on may be huge pages.
    BagIndex huge_from() const { return huge_from_; }

    // Metadata pages for the thread heaps, mapped as asked; `bytes` from their start.
    bool grow_thread_heaps(Bytes bytes);
    Address thread_heaps() const { return start_ + space_->thread_heaps_offset(); }
    Bytes thread_heaps_capacity() const { return space_->thread_heaps_bytes(); }

    // What free() needs of a thread heap at address `h`: address_space.h has the equation.
    Address bias_for(Address h) const { return (bags_before(h) << bag_shift) - start_; }
    std::uint64_t bound_for(Address h) const { return bags_before(h) + end_bag_.value; }

private:
    std::uint64_t* word_of(BagMark mark, std::uint64_t b) const {
        return marks_ + b / 64 * bag_marks + static_cast<unsigned>(mark);
    }
    std::uint64_t bags_before(Address h) const { return class_reach - (h - start_); }
    void advise(Address from, Address to);
    bool map_metadata(std::uint64_t up_to);
    os::Mapped map_bags(std::uint64_t from, std::uint64_t to);
    // The number of bags mapped together at `bag`, so that a huge page is mapped as a whole.
    std::uint64_t unit_at(std::uint64_t bag) const;

    const AddressSpace* space_ = nullptr;
    Address start_ = 0;
    Bag* bags_ = nullptr;
    std::uint64_t* marks_ = nullptr;
    RegionPages pages_;
    BagIndex first_bag_;
    BagIndex end_bag_;
    BagIndex huge_from_;
    bool in_the_way_ = false;                  // another mapping, behind the usable bags
    std::atomic<std::uint64_t> committed_{0};  // bags below are usable
    std::uint64_t reserve_end_ = 0;            // bags below are held
    MetadataPages class_map_pages_;
    MetadataPages marks_pages_;
    MetadataPages table_pages_;
    MetadataPages thread_heaps_pages_;
};

}  // namespace numalloc
