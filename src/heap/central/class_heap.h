// The free objects of one class on one node that no thread holds: in rings, in bags, and in the never-used rest of the
// bags being carved.
//
//   take:  newest batch of the ring               (of a large class also larger classes' common rings)
//          else freed objects of bags            (first the bag that was full last: the fullest)
//          else a piece of the bag being carved  (linked by the caller, outside of the lock)
//          else a bag that another shard can spare, unless each has huge pages of its own
//          else a bag from the page heap
//          and, if memory runs out, from the rings and bags of other shards
//   put:   into the ring. Lists that it has no room for, and lists of sparse shards, are sorted into their bags. A bag
//          that has all its objects again returns to the page heap, for any class to use.
//
// The bags are divided into shards, and a thread takes from its own shard (objects above 32 KiB from one of the first
// four). Otherwise objects of threads in different phases would lie side by side, and one thread's freed objects would
// be holes between another's. A list goes to the shard of its first object's bag.
//
// Threads put and take lists without a lock (ring.h): large objects in a ring that the class's shards share, others in
// the shard's ring. Objects go back to their bags without a lock, too (free_list.h, sort.cpp). A shard's lock (rank
// size_class) guards its list of bags: a bag gets its first freed object, or all of them; a refill chooses a bag;
// another shard adopts one. No system call is made under it, and a refill walks no list under it. A bag changes its
// shard under the locks of both, so the holder of the lock of a bag's shard can rely on the shard.
//
// Thread-safe.
#pragma once

#include "heap/central/free_list.h"
#include "heap/central/shard.h"
#include "heap/pages/page_heap.h"

namespace numalloc {

namespace policy::trim {

// Milliseconds for which malloc_trim() does not inspect a shard's bags again, unless much has changed: a program that
// calls it after every operation would fault the same pages in after every call.
constexpr std::uint32_t look_again_after = 100;

}  // namespace policy::trim

namespace policy::idle {

// Bytes that a call of the allocator returns of idle objects, each 100 ms on a node, and bags that it inspects for
// that. So a program that needs the pages again right after pays for 80 MiB a second at most.
constexpr Bytes bytes_a_call = 8 * MiB;
constexpr std::uint32_t bags_a_call = 1024;

}  // namespace policy::idle

// Objects for a thread: a linked list, or `count` objects in a row that were never used.
struct Supply {
    Object* list = nullptr;
    void* fresh = nullptr;
    std::uint32_t count = 0;
    bool zeroed = false;  // fresh objects that read as zero
};

// Links never-used objects in address order, so that successive mallocs return successive addresses.
Object* link_fresh(void* fresh, std::uint32_t count, Bytes size);
// The hardened library's version: in a random order, each order equally likely.
Object* link_shuffled(void* fresh, std::uint32_t count, Bytes size);

struct ClassUse {
    std::uint64_t taken = 0;  // objects outside of bags: in the program, in threads and in rings
    std::uint64_t ring = 0;
    std::uint64_t bags = 0;
    std::uint64_t fetched = 0;    // objects that threads took, since the start
    std::uint64_t came_home = 0;  // objects that other nodes' threads sent, since the start
};

// What return_idle_pages() may still do within a call of the allocator.
struct IdlePart {
    Bytes bytes = policy::idle::bytes_a_call;
    std::uint32_t bags = policy::idle::bags_a_call;
};

// Passed by value: it only refers to the class's data.
class ClassHeap {
public:
    ClassHeap(Shards& shards, PageHeap& pages, ClassId c) : shards_(shards), pages_(pages), class_(c) {}

    // The owners of huge pages with incremental_sharing=0: each shard of a class.
    static constexpr std::uint32_t page_owners = class_count * policy::shards::most;

    // Takes about `want` objects, or a whole batch; at least one if there is any memory.
    Supply take(std::uint32_t want, unsigned shard = 0);

    // Takes over a list. Returns the number of objects that the thread should keep from now on: few if the class's bags
    // are mostly empty, because a kept object holds a whole bag. A remote cache's lists may be short: they are joined
    // to whole batches.
    enum class From { this_node, remote_cache };
    std::uint32_t put(Batch list, From from = From::this_node);

    // Takes the list of a thread that ends: into the ring for the next thread, unless the ring has one already.
    // Otherwise each generation of threads would leave more there.
    void give_last(Batch list);

    // Sorts a list into its bags and bypasses the ring.
    void give_to_bags(Batch list);

    // Frees the shard's bag that is being carved, if none of its objects is in use.
    void give_carved(unsigned shard);

    // Sorts the rings' objects into their bags, and returns empty bags that were kept for carving. `idle_only`: only of
    // shards that no thread has used since the last call.
    void drain(bool idle_only);

    // Returns pages of bags in use to the system if every object on them is free (free_pages.h). Looks at bags in
    // which objects were freed since the last call; within policy::trim::look_again_after of it, only if much has
    // changed in their shard. Returns the number of bytes. `now`: milliseconds.
    Bytes return_free_pages(std::uint32_t now);
    // The same for objects above 32 KiB (idle_pages.cpp): for as many as no thread has needed for `delay` milliseconds,
    // or longer where such were needed again, as far as `part` allows. Not where huge pages are wanted, and not in the
    // hardened library, which would miss writes to them.
    void return_idle_pages(std::uint32_t now, std::uint32_t delay, IdlePart& part);

    // Why `p`, which lies in bag `b` of the class, cannot be an object in use, or nullptr. Takes no lock: exact for a
    // pointer that no other thread frees.
    static const char* why_invalid(const Region& region, BagIndex b, ClassId c, const void* p);

    ClassUse use() const;
    void validate() const;

private:
    struct Chain;
    class Sorter;
    class FreePages;
    class TrimLook;
    class IdleLook;

    // Bags that became empty under a lock, to be returned to the page heap after it.
    struct Emptied {
        BagIndex first;
    };

    // What a refill takes from bags under the lock, without touching the objects: whole lists, and a bag from which it
    // will cut the newest objects.
    struct Taken {
        static constexpr unsigned most = 16;
        Batch list[most];
        unsigned lists = 0;
        std::uint32_t count = 0;
        BagIndex cut;
        std::uint32_t cut_count = 0;
        Supply fresh;  // may be more than the refill wants if the objects were away
        bool nothing() const { return lists == 0 && cut == no_bag && fresh.count == 0; }
    };

    // Holds the lock of one shard at a time.
    class Held {
    public:
        explicit Held(ClassHeap& heap) : heap_(heap) {}
        ~Held() { release(); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

        Shard& shard() const { return *shard_; }
        unsigned number() const { return number_; }
        bool is_of(const Bag& bag) const { return shard_ != nullptr && shard_of(bag) == number_; }
        // Which lock is held is known only at run time. The user of the shard calls lock.assert_held().
        void hold(unsigned shard) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;
        void hold_shard_of(const Bag& bag);
        void release() NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

    private:
        ClassHeap& heap_;
        Shard* shard_ = nullptr;
        unsigned number_ = 0;
    };

    Shard& shard(unsigned i) const { return shards_.at(i, class_); }
    // Where a thread of shard `number` has the class's objects.
    unsigned shard_for(unsigned number) const {
        if (shape().batch > 1) return number;
        const unsigned one = number % policy::shards::of_large;
        return shards_.is_open(one) ? one : 0;
    }
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
    Supply try_bags(std::uint32_t want, unsigned shard, bool or_add, BagIndex& fresh);

    // The shard's lock also guards small.next, previous and listed of its bags.
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

    // Called without the lock.
    Supply supply_of(const Taken& taken, std::uint32_t want);
    Supply shortened(Supply fresh, std::uint32_t want);
    Object* cut(BagIndex b, std::uint32_t count, Object* before);
    void sort(Batch list, Emptied& emptied);
    void give(const Emptied& emptied);
    void clear_marks(BagIndex b);

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
    const Bytes offset = address_of(p) - region.first_object(head, c);
    const unsigned index = object_at(c, offset);
    if (offset != Bytes{index} * shape_of(c).size || index >= shape_of(c).objects)
        return "points inside an object, not at its start";
    const Bag& bag = region.bag(head);
    if (NUMALLOC_LIKELY(static_cast<std::int32_t>(index) < load_relaxed(bag.small.here))) return nullptr;
    if (index >= load_relaxed(bag.small.carved)) return "was never allocated";
    return is_away(region, head, address_of(p) - address_of(region.address(head))) ? "was freed already" : nullptr;
}

}  // namespace numalloc
