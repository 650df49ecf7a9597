// One node's part of the address space: its class map, its bag table, and the bags themselves, mapped from the bottom
// as they are needed. Ranges where others have mappings are left out.
//
// The maps are written under the lock of the bags' owner. free() reads class_at() without a lock: a program may only
// free what it owns, and as long as it owns the object the byte does not change.
#pragma once

#include <atomic>

#include "base/atomic.h"
#include "heap/space/address_space.h"
#include "os/mapping.h"
#include "os/numa_policy.h"

namespace numalloc {

namespace policy::huge_pages {

// The first 8 MiB of a node's bags stay on normal pages even where the system says `always`: a small program is not
// charged 2 MiB for each page that it touches.
constexpr Bytes normal_first = 8 * MiB;

}  // namespace policy::huge_pages

// How a region's pages are placed and advised.
struct RegionPages {
    os::HugePages huge_pages = os::HugePages::system;       // for all but the first bags
    Bytes normal_first = policy::huge_pages::normal_first;  // bytes of these first bags
    bool huge_by_itself = false;                            // the first bags may become huge pages without advice
    bool huge = false;                                      // the other bags may lie on huge pages
    // as long as they cost no more than clearing them and, for objects above 8 KiB, where memory was densely used
    bool huge_if_worth_it = false;
    enum class Place { first_touch, preferred, within, strict, interleaved };
    Place place = Place::first_touch;
    unsigned os_node = 0;
    const os::NodeMask* nodes = nullptr;  // within: if the node is full, pages come from others of these
    bool balanced = false;                // the kernel may move the bags' pages to other nodes

    // Places the pages of the range. If the kernel refuses, their first touch does.
    void bind(void* p, Bytes bytes) const;
    // The same for metadata, which is neither interleaved, because a thread's first touch places its own thread heap,
    // nor balanced.
    void bind_metadata(void* p, Bytes bytes) const;
};

// Metadata pages of one kind, mapped from their start as far as they are needed.
class MetadataPages {
public:
    MetadataPages() = default;
    // `start` is a multiple of the page size.
    explicit MetadataPages(Address start) : start_(start), end_(start) {}
    bool map_up_to(Address end, const AddressSpace& space, const RegionPages& pages);
    // Unmaps all of them.
    void give_back(const AddressSpace& space);

private:
    Address start_ = 0;
    Address end_ = 0;  // of the usable pages
};

class Region {
public:
    // Maps the first metadata. `space` outlives the region. false, with nothing changed, if out of memory.
    bool open(const AddressSpace& space, unsigned region, const RegionPages& pages);

    Address start() const { return start_; }
    std::uint8_t* class_map() const { return reinterpret_cast<std::uint8_t*>(start_); }
    BagIndex first_bag() const { return first_bag_; }
    BagIndex end_bag() const { return end_bag_; }

    BagIndex bag_of(const void* p) const { return BagIndex{(address_of(p) - start_) >> bag_shift}; }
    // The first object of a bag of the class.
    Address first_object(BagIndex head, ClassId c) const { return address_of(address(head)) + first_of(c, head); }
    void* address(BagIndex b) const { return reinterpret_cast<void*>(start_ + (Address{b.value} << bag_shift)); }

    Bag& bag(BagIndex b) const { return bags_[b.value]; }
    // The first bag of the run that a bag in use belongs to.
    BagIndex head_of(BagIndex b) const {
        const Bag& entry = bag(b);
        return entry.state == BagState::inside ? b - entry.run : b;
    }

    // Makes head_of() right for all bags of a run of objects. The last bag's entry was written before, under the lock
    // under which neighbours read it. `from`: the entries before it are right already.
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

    // Marks are set under the page heap's lock. A bag's owner may read its marks without the lock, while the
    // neighbours' bits in the same word change.
    std::uint32_t count(BagMark mark, BagIndex b, Bytes bags) const;
    void set(BagMark mark, BagIndex b, Bytes bags, bool on);
    // How many bags of [from, to) have another value of the mark than the bag before them. `from` is not bag 0.
    std::uint32_t changes(BagMark mark, BagIndex from, BagIndex to) const;
    std::uint32_t count_dirty(BagIndex b, Bytes bags) const { return count(BagMark::dirty, b, bags); }
    // Whether objects that were never handed out, in bags in use, read as zero.
    bool is_zero(const void* p, Bytes bytes) const {
        const BagIndex first = bag_of(p);
        return count_dirty(first, bag_of(static_cast<const char*>(p) + bytes - 1) - first + 1) == 0;
    }
    void set_dirty(BagIndex b, Bytes bags, bool dirty) { set(BagMark::dirty, b, bags, dirty); }

    // New pages of bags from here on come from where the region's do; those of bags before may come from the node of
    // the thread that touches them. 0, except in the child of a fork (heap/node/inherited.cpp).
    BagIndex bound_from() const { return BagIndex{bound_from_.load(std::memory_order_relaxed)}; }
    // The next three are called while no bags are mapped or unmapped. Has new pages of the bags placed by first touch,
    // unless the kernel refuses that.
    void unbind(BagRange bags);
    void set_bound_from(BagIndex b) { bound_from_.store(b.value, std::memory_order_relaxed); }
    // Binds the bags again and, unless they are balanced, moves there what was touched meanwhile. Passes over holes,
    // which the child has where its parent used MADV_DONTFORK. false if the kernel refuses.
    bool bind_again(BagRange bags);

    // Makes bags in use zero pages of the region's own mapping again, bound and advised like the region.
    os::Replaced renew(BagIndex b, Bytes bags);
    // Binds those of the bags that are not before bound_from().
    void bind(BagIndex b, Bytes bags);
    // The same, and advises.
    void settle(BagIndex b, Bytes bags);
    void advise(BagIndex b, Bytes bags, os::HugePages mode) { os::advise_huge(address(b), bags << bag_shift, mode); }

    // The end of the usable bags moves in two steps, so that system calls run without the lock that guards the bags.
    // Only one thread at a time may be in a first step. Maps the bags from committed() up to `up_to`, and some more.
    // Returns the new end; 0 if the OS refuses, or another mapping is in the way.
    std::uint64_t map_up_to(std::uint64_t up_to);
    // If another mapping is in the way: maps `bags` bags in a row behind it; empty if it cannot. The bags between
    // committed() and the first of them are not ours.
    struct Stretch {
        std::uint64_t first = 0, end = 0;
    };
    Stretch map_beyond(std::uint64_t bags);
    // trimmed(): where the clean bags from `from` on may be cut off. unmap(): unmaps [from, to), which must be unused,
    // as far as the OS permits, and returns the new end of the usable bags.
    std::uint64_t trimmed(std::uint64_t from) const { return align_up(from, unit_at(from)); }
    std::uint64_t unmap(std::uint64_t from, std::uint64_t to);
    // The second step.
    void set_committed(std::uint64_t end) { committed_.store(end, std::memory_order_relaxed); }
    // Also read without a lock: everything that a caller owns lies below.
    std::uint64_t committed() const { return committed_.load(std::memory_order_relaxed); }
    bool is_mapped(BagIndex b) const { return b.value < committed(); }

    // Bags from here on may lie on huge pages.
    BagIndex huge_from() const { return huge_from_; }

    // Maps metadata pages for the thread heaps: `bytes` from their start. false if it cannot.
    bool grow_thread_heaps(Bytes bytes);
    Address thread_heaps() const { return start_ + space_->thread_heaps_offset(); }
    Bytes thread_heaps_capacity() const { return space_->thread_heaps_bytes(); }

    // The constants of free() for a thread heap at address `h`: address_space.h has the equation.
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
    bool in_the_way_ = false;                   // another mapping begins behind the usable bags
    std::atomic<std::uint64_t> committed_{0};   // bags below are usable
    std::atomic<std::uint32_t> bound_from_{0};  // bags below may be placed by first touch
    std::uint64_t reserve_end_ = 0;             // bags below are held
    MetadataPages class_map_pages_;
    MetadataPages marks_pages_;
    MetadataPages table_pages_;
    MetadataPages thread_heaps_pages_;
};

}  // namespace numalloc
