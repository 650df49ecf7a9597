// The objects of one class on one node that no thread holds: in rings, in bags that have free objects,
// and in the never-used rest of the bags being carved.
//
//   take:  newest batch of the ring
//          else freed objects of bags            (first the bag that was full last: the fullest)
//          else a piece of the bag being carved  (linked by the caller, outside of the lock)
//          else a bag that another shard can spare, unless each has huge pages of its own
//          else a bag from the page heap
//          and with no memory left what the rings and bags of other shards have
//   put:   into the ring; what the ring has no room for is sorted back into its bags, and a bag
//          that has all its objects again goes back to the page heap, for any class to use.
//
// The bags are divided into shards, and a thread takes from its own: objects of threads that
// are in different phases would otherwise lie side by side, and what one frees would be holes beside what
// another keeps. A list goes to the shard of its first object's bag.
//
// Lists are handed over and taken without a lock (ring.h), large objects by a ring that the class's
// shards have in common, others by the shard's, and objects go back to their bags without one (free_list.h, sort.cpp).
// The lock of a shard (rank size_class) is for what changes its list of bags: a bag that has its first freed object, or
// all of them; the next bag to take from; one that another shard spares. No list is walked while it is held, and the
// kernel is not asked. A bag changes its shard under the locks of both: who holds the lock of the shard that a bag says
// may rely on it.
//
// Thread-safe.
#pragma once

#include "heap/central/free_list.h"
#include "heap/central/shard.h"
#include "heap/pages/page_heap.h"

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
// The same of the hardened library: in an order by chance, each as likely as any other.
Object* link_shuffled(void* fresh, std::uint32_t count, Bytes size);

struct ClassUse {
    std::uint64_t taken = 0;  // objects outside of bags: with programs, threads and in the ring
    std::uint64_t ring = 0;
    std::uint64_t bags = 0;
    std::uint64_t fetched = 0;    // since the start
    std::uint64_t came_home = 0;  // from other nodes' threads, since the start
};

// By value: it says only where the class's things are.
class ClassHeap {
public:
    ClassHeap(Shards& shards, PageHeap& pages, ClassId c) : shards_(shards), pages_(pages), class_(c) {}

    // Who may have huge pages of its own: each shard of a class.
    static constexpr std::uint32_t page_owners = class_count * policy::most_shards;

    // At least one object, if there is any memory: about `want`, or a whole batch.
    Supply take(std::uint32_t want, unsigned shard = 0);

    // Takes over a list. The number of objects that a thread should keep to itself from now on:
    // few where the class's bags are mostly empty, because a kept object holds a whole bag.
    // A remote cache's lists may be short: they are made whole batches here.
    enum class From { this_node, remote_cache };
    std::uint32_t put(Batch list, From from = From::this_node);

    // The list of a thread that ends: into the ring for the next one, unless there is one already. Each
    // generation of threads would else leave more there.
    void give_last(Batch list);

    // Sorts a list into its bags, past the ring.
    void give_to_bags(Batch list);

    // The shard's bag that is being carved goes back to the page heap if none of its objects is in use.
    void give_carved(unsigned shard);

    // The rings' objects into their bags, and empty bags that were kept for carving into the page
    // heap. `idle_only`: of the shards that nobody used since the last call.
    void drain(bool idle_only);

    // Returns pages of bags in use to the system if every object on them is free (free_pages.cpp). It looks at bags in
    // which objects were freed since the last call; within policy::look_again_after of it, only if much has changed in
    // their shard. The number of bytes returned. `now`: milliseconds.
    Bytes return_free_pages(std::uint32_t now);

    // Why `p`, which lies in bag `b` of the class, cannot be an object in use, or nullptr.
    // Reads without the lock: exact for a pointer that no other thread frees.
    static const char* why_invalid(const Region& region, BagIndex b, ClassId c, const void* p);

    ClassUse use() const;
    void validate() const;

private:
    struct Chain;
    class Sorter;
    class FreePages;

    // Bags that became wholly free under a lock, given to the page heap after it.
    struct Emptied {
        BagIndex first;
    };

    // What a refill has of bags, taken under the lock without a look at the objects: whole lists, and a
    // bag of which it will take the newest objects.
    struct Taken {
        static constexpr unsigned most = 16;
        Batch list[most];
        unsigned lists = 0;
        std::uint32_t count = 0;
        BagIndex cut;
        std::uint32_t cut_count = 0;
        Supply fresh;  // objects that were away may be more than a refill wants
        bool nothing() const { return lists == 0 && cut == no_bag && fresh.count == 0; }
    };

    // The shard whose lock is held, one at a time.
    class Held {
    public:
        explicit Held(ClassHeap& heap) : heap_(heap) {}
        ~Held() { release(); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

        Shard& shard() const { return *shard_; }
        unsigned number() const { return number_; }
        bool is_of(const Bag& bag) const { return shard_ != nullptr && shard_of(bag) == number_; }
        // Which lock these are about is known at run time only; who uses the shard says lock.assert_held().
        void hold(unsigned shard) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;
        void hold_shard_of(const Bag& bag);
        void release() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

    private:
        ClassHeap& heap_;
        Shard* shard_ = nullptr;
        unsigned number_ = 0;
    };

    Shard& shard(unsigned i) const { return shards_.at(i, class_); }
    Region& region() const { return pages_.region(); }
    Bag& bag(BagIndex b) const { return region().bag(b); }
    const ClassShape& shape() const { return shape_of(class_); }
    Common& common() const { return shards_.common(class_); }
    const Bag& home_of(Batch list) const;

    void check_some(Shard& shard, Batch list);
    bool has_in_use_below(policy::Fraction part, const Shard& shard) const;
    bool sparse(const Shard& shard) const;
    bool can_spare(const Shard& shard) const;
    void note_spare(unsigned shard);
    void count_bags(Shard& shard, std::int32_t more) NUMALLOC_REQUIRES(shard.lock);
    std::uint32_t ring_room(std::uint32_t objects) const;
    std::uint32_t common_room() const;
    void put_in_common(Batch list, Emptied& emptied);
    void put_in_ring(Shard& home, Batch list, Emptied& emptied);
    Batch take_list(Shard& shard);
    Batch take_larger();
    Supply take_any(std::uint32_t want, unsigned shard);
    Supply take_from_bags(std::uint32_t want, unsigned shard, bool or_add);
    Supply try_bags(std::uint32_t want, unsigned shard, bool or_adopt, BagIndex& fresh);

    // What small.next, previous, listed of the shard's bags say is under its lock too.
    void take_from(Shard& shard, std::uint32_t want, Taken& taken) NUMALLOC_REQUIRES(shard.lock);
    void take_freed(Shard& shard, std::uint32_t want, Taken& taken) NUMALLOC_REQUIRES(shard.lock);
    Supply carve(Shard& shard, std::uint32_t want) NUMALLOC_REQUIRES(shard.lock);
    bool adopt(Shard& shard, unsigned number) NUMALLOC_REQUIRES(shard.lock);
    void add_bag(Shard& shard, unsigned number, BagIndex fresh) NUMALLOC_REQUIRES(shard.lock);
    void give_if_empty(Shard& shard, BagIndex b, Emptied& emptied) NUMALLOC_REQUIRES(shard.lock);
    void enlist(Shard& shard, BagIndex b) NUMALLOC_REQUIRES(shard.lock);
    void enlist_last(Shard& shard, BagIndex b) NUMALLOC_REQUIRES(shard.lock);
    void unlist(Shard& shard, BagIndex b) NUMALLOC_REQUIRES(shard.lock);
    Supply take_back(Shard& shard, BagIndex b, std::uint32_t want) NUMALLOC_REQUIRES(shard.lock);
    BagIndex spared_by(Shard& other) NUMALLOC_REQUIRES(other.lock);

    // After it.
    Supply supply_of(const Taken& taken, std::uint32_t want);
    Supply shortened(Supply fresh, std::uint32_t want);
    Object* cut(BagIndex b, std::uint32_t count, Object* before);
    void sort(Batch list, Emptied& emptied);
    void give(const Emptied& emptied);

    Shards& shards_;
    PageHeap& pages_;
    ClassId class_;
};

// Whether an object that begins at `offset` of the bag is away. Needs no lock; exact if no other thread frees the
// object.
inline bool is_away(const Region& region, BagIndex head, Bytes offset) {
    const Bag& bag = region.bag(head + static_cast<std::uint32_t>(offset >> bag_shift));
    return (load_relaxed(bag.away) >> (offset % bag_bytes >> away_shift) & 1) != 0;
}

inline const char* ClassHeap::why_invalid(const Region& region, BagIndex b, ClassId c, const void* p) {
    const BagIndex head = region.head_of(b);
    const Bytes offset = address_of(p) - address_of(region.address(head));
    const unsigned index = object_at(c, offset);
    if (offset != Bytes{index} * shape_of(c).size || index >= shape_of(c).objects)
        return "points inside an object, not at its start";
    const Bag& bag = region.bag(head);
    if (NUMALLOC_LIKELY(static_cast<std::int32_t>(index) < load_relaxed(bag.small.here))) return nullptr;
    if (index >= load_relaxed(bag.small.carved)) return "was never allocated";
    return is_away(region, head, offset) ? "was freed already" : nullptr;
}

}  // namespace numalloc
