// The objects of one class on one node that no thread holds: in the ring, in bags that have
// free objects, and in the never-used rest of the bag being carved.
//
//   take:  newest sub-list of the ring
//          else freed objects of bags            (first the bag that was full last: the fullest)
//          else a piece of the bag being carved  (linked by the caller, outside of the lock)
//          else a bag that another share can spare
//          else a bag from the big heap
//   put:   into the ring; what the ring has no room for is sorted back into its bags, and a bag
//          that has all its objects again goes back to the big heap, for any class to use.
//
// The bags are divided into shares, and a thread takes from its own: objects of threads that are
// in different phases would otherwise lie side by side, and what one frees would be holes beside
// what another keeps. A list belongs to the share of its first object's bag.
//
// Thread-safe; one lock (rank size_class), never held while the kernel purges.
#pragma once

#include "heap/node/batch_ring.h"
#include "heap/node/big_heap.h"
#include "os/lock.h"

namespace numalloc {

// Objects for a thread: a linked list, or `count` objects in a row that were never used.
struct Supply {
    Object* list = nullptr;
    void* fresh = nullptr;
    std::uint32_t count = 0;
    bool zeroed = false;  // fresh objects that read as zero
};

// Links objects that were never used, in the order of their addresses: successive mallocs then
// return successive addresses.
Object* link_fresh(void* fresh, std::uint32_t count, Bytes size);

struct ClassUse {
    std::uint64_t taken = 0;  // objects outside of bags: with programs, threads and in the ring
    std::uint64_t ring = 0;
    std::uint64_t bags = 0;
};

// Into how many shares a class's bags are divided: threads beyond so many have one together.
constexpr unsigned class_shares = 16;

class ClassHeap {
public:
    // At least one object, if there is any memory: about `want`, or a whole sub-list.
    Supply take(BigHeap& big, ClassId c, std::uint32_t want, unsigned share = 0);

    // Takes over a list. The number of objects that a thread should keep to itself from now on:
    // few where the class's bags are mostly empty, because a kept object holds a whole bag.
    std::uint32_t put(BigHeap& big, ClassId c, SubList list);

    // The list of a thread that ends: into the ring for the next one, unless there is one of its share
    // already. Each generation of threads would else leave more there.
    void put_last(BigHeap& big, ClassId c, SubList list);

    // Sorts a list into its bags, past the ring.
    void put_into_bags(BigHeap& big, ClassId c, SubList list);

    // The ring's objects into their bags, and an empty bag that was kept for carving into the
    // big heap. `idle_only`: unless somebody used the ring since the last call.
    void drain(BigHeap& big, ClassId c, bool idle_only);

    // Why `p`, which lies in a bag of this class, cannot be an object in use, or nullptr.
    // Reads without the lock: exact for a pointer that no other thread frees.
    static const char* why_invalid(const Region& region, ClassId c, const void* p);

    ClassUse use();
    void validate(const BigHeap& big, ClassId c);
    os::Lock& lock() { return lock_; }

private:
    // Bags that became wholly free under the lock, given to the big heap after it.
    struct Emptied {
        std::uint32_t first = no_bag;
    };

    struct Share {
        std::uint32_t partial = no_bag;       // bags with freed objects, the fullest first
        std::uint32_t last_partial = no_bag;
        std::uint32_t carving = no_bag;       // the bag whose never-used rest is handed out
        std::uint32_t bags = 0;
        std::uint64_t taken = 0;              // objects outside of the share's bags
        std::uint64_t flush_below = 0;        // sparse: empty the ring when `taken` falls to this
    };

    static bool sparse(const Share& share, ClassId c);
    static bool can_spare(const Share& share, ClassId c);
    bool adopt(Region& region, ClassId c, unsigned share, bool at_any_price);
    Supply take_freed(Region& region, Share& share, std::uint32_t want);
    Supply carve(Region& region, ClassId c, Share& share, std::uint32_t want);
    bool add_bag(BigHeap& big, ClassId c, unsigned share);
    [[noreturn]] void die_in_sort(void (*die)(const void*), const void* p);
    void sort(Region& region, ClassId c, SubList list, Emptied& emptied);
    void release_if_empty(Region& region, ClassId c, std::uint32_t b, Emptied& emptied);
    static void give(BigHeap& big, const Emptied& emptied);
    static std::uint8_t share_of(const Region& region, SubList list);
    void enlist(Region& region, std::uint32_t b);
    void unlist(Region& region, std::uint32_t b);

    static constexpr std::uint32_t lists_per_walk = 32;

    os::Lock lock_{os::LockRank::size_class};
    std::uint32_t lists_put_ = 0;
    bool ring_used_ = false;
    Share shares_[class_shares];
    BatchRing ring_;
};

}  // namespace numalloc
